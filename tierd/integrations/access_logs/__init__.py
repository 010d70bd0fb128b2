"""Access logs of the OSTs of this node: which files are read most."""
