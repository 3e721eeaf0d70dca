"""Small projects with the exact objects and messages they give, named by the behavior they show."""
