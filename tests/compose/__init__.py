"""Reading Compose files, stage by stage."""
