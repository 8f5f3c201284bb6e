"""The node traits service: what bare metal nodes are like, stored, queried, checked."""
