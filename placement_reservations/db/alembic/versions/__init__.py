"""The revisions of the schema. Their ids are those of OpenStack Placement."""
