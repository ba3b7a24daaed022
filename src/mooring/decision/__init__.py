"""The one evaluation of a pod on the nodes: which fit, why others do not, scores, and the best.

Pods with the scheduler's profile come in; an `Evaluation` goes out. Everything is kept in columns
over the nodes. For pods of one *class* (equal cache keys of all plugins) the columns of the last
one are brought up to date; without such a memory they are made. The words of this room: *class*,
*results* (one plugin's answers for one cache key), *feasible nodes*, *normalized scores*, *domain
table*, *hypothetical nodes*.
"""
