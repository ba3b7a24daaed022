"""`mooring run`: a scheduler for a real cluster, from flags to exit code.

`flags` reads the command line, `settings` turns it into one checked value, `process` puts client,
informers, scheduler, leader election and endpoints together, and starts and stops them.
"""
