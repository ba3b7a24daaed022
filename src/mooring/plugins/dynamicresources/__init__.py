"""DynamicResources: devices for the claims of a pod, on the node that the pod is bound to."""

from mooring.plugins.dynamicresources.plugin import DynamicResources as DynamicResources
