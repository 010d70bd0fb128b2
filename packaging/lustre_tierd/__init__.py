"""All that is installed: the rooms of lustre-tierd lie below this package under the names of their folders."""
