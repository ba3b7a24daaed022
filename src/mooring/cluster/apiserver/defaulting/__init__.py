"""What objects have although nobody wrote it.

Flows in: an object as it was sent. Flows out: the same with the defaults of a kube-apiserver filled
in, in place. `objects` is the door; the other files know pods and what makes pods.
"""
