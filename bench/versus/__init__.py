"""Our scheduler and the real kube-scheduler, one after the other on the same real kube-apiserver.

`python -m bench.versus` measures: `workloads.py` says what is scheduled, `rig.py` holds the cluster
and starts the schedulers, `measure.py` watches one of them at work, `raw.py` keeps what was found,
line by line. `report.py` makes `docs/performance.md` of it, with a picture by `chart.py`.
"""
