"""Policies, each in one file: how its problem is found, what is planned, how the acts are judged, and all its words."""
