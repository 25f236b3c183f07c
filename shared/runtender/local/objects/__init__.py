"""The simulated Cloud Storage: its JSON API as the official client and curl use it."""

from runtender.local.objects.bodies import Bodies, DiskBodies, MemoryBodies
from runtender.local.objects.core import METHODS, ObjectsCore, OverwriteAnswer, Publish
from runtender.local.objects.server import ObjectServer
from runtender.local.objects.versions import Notification

__all__ = [
    "METHODS",
    "Bodies",
    "DiskBodies",
    "MemoryBodies",
    "Notification",
    "ObjectServer",
    "ObjectsCore",
    "OverwriteAnswer",
    "Publish",
]
