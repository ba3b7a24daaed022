"""What may be wrong with objects, in the words of a kube-apiserver.

Flows in: an object after defaulting, and on updates the one it replaces. Flows out: `Problems`, one
per field that is wrong. `objects` is the door and picks the rules of a kind; the other files hold
the rules.
"""
