"""Definitions with the fields of scheduler-plugins' custom resources, and objects of them."""

from __future__ import annotations

from typing import Any

import yaml

Object = dict[str, Any]

POD_GROUP = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podgroups.scheduling.x-k8s.io
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {plural: podgroups, singular: podgroup, kind: PodGroup, shortNames: [pg, pgs]}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns:
        - {name: Phase, type: string, jsonPath: .status.phase}
        - {name: MinMember, type: integer, jsonPath: .spec.minMember}
        - {name: Running, type: integer, jsonPath: .status.running, priority: 1}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
      schema:
        openAPIV3Schema:
          type: object
          description: Pods that are scheduled together, or not at all.
          properties:
            spec:
              type: object
              properties:
                minMember: {type: integer, format: int32, minimum: 1, description: how many pods}
                minResources:
                  type: object
                  additionalProperties:
                    x-kubernetes-int-or-string: true
                    anyOf: [{type: integer}, {type: string}]
                    pattern: ^(\\+|-)?[0-9]+([.][0-9]*)?([KMGTPE]i?|m)?$
                scheduleTimeoutSeconds: {type: integer, format: int32, default: 60}
            status:
              type: object
              properties:
                phase: {type: string, enum: [Pending, Scheduling, Running, Finished]}
                occupiedBy: {type: string}
                running: {type: integer, format: int32}
                succeeded: {type: integer, format: int32}
                failed: {type: integer, format: int32}
                scheduleStartTime: {type: string, format: date-time}
"""
ELASTIC_QUOTA = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: elasticquotas.scheduling.x-k8s.io
spec:
  group: scheduling.x-k8s.io
  scope: Namespaced
  names: {plural: elasticquotas, singular: elasticquota, kind: ElasticQuota, shortNames: [eq, eqs]}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      subresources: {status: {}}
      additionalPrinterColumns:
        - {name: Used, type: string, jsonPath: .status.used}
        - {name: Max, type: string, jsonPath: .spec.max}
        - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                min: &amounts
                  type: object
                  additionalProperties:
                    x-kubernetes-int-or-string: true
                    anyOf: [{type: integer}, {type: string}]
                max: *amounts
            status:
              type: object
              properties: {used: *amounts}
"""
GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POD_GROUPS = f"{DEFINITIONS}/podgroups.scheduling.x-k8s.io"


def definition(text: str = POD_GROUP) -> Object:
    found: Object = yaml.safe_load(text)
    return found


def pod_group(name: str = "train", **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": 3, **spec},
    }
