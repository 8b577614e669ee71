"""The seam to Agent Lightning: the only room that imports agentlightning, verl or ray."""
