"""The simulated Pub/Sub: topics, push and pull subscriptions, redelivery, dead letters."""

from runtender.local.topics.core import Arrivals, TopicsCore, once
from runtender.local.topics.messages import Delivery, Message, Subscription, push_body
from runtender.local.topics.plane import plane_subscriptions, plane_topics
from runtender.local.topics.push import Pusher, post_push
from runtender.local.topics.rest import TopicsApi
from runtender.local.topics.server import TopicsServer

__all__ = [
    "Arrivals",
    "Delivery",
    "Message",
    "Pusher",
    "Subscription",
    "TopicsApi",
    "TopicsCore",
    "TopicsServer",
    "once",
    "plane_subscriptions",
    "plane_topics",
    "post_push",
    "push_body",
]
