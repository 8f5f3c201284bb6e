"""The node traits service: stores, queries and validates traits of bare metal nodes."""
