"""Small controllers: a function that picks a node for a pod, with everything around it done."""
