"""Pure: findings, candidates and free space in, plans out. Policies choose and order; they never act."""
