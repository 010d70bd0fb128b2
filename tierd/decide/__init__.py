"""Pure: findings, candidates and room in, plans out. Policies choose and order; they never act."""
