"""The plane's own topics and subscriptions, with the limits that the deployment gives them."""

from __future__ import annotations

from datetime import timedelta

from runtender.local.topics.messages import Subscription
from runtender.settings import Settings

# A tick that came late tells nothing that the next one does not tell.
_TICK_RETENTION = timedelta(seconds=600)


def plane_topics(settings: Settings) -> tuple[str, ...]:
    """Return the names of all topics of the plane."""
    return (
        settings.submit_topic,
        settings.marker_topic,
        settings.tick_topic,
        settings.dead_letter_topic,
        settings.notify_topic,
    )


def plane_subscriptions(settings: Settings, functions_url: str) -> tuple[Subscription, ...]:
    """Return the plane's subscriptions in the time scale of `settings`.

    Each function serves a folder of `functions_url`; its address ends in a slash, because without one it is
    redirected. Dead letters and notifications wait to be pulled.
    """
    base = functions_url.rstrip("/")
    submit, marker, tick = settings.submit_topic, settings.marker_topic, settings.tick_topic
    dead_letters, notices = settings.dead_letter_topic, settings.notify_topic
    subscriptions = (
        Subscription(
            name=f"{submit}-push",
            topic=submit,
            endpoint=f"{base}/on_submit/",
            dead_letter_topic=dead_letters,
        ),
        Subscription(
            name=f"{marker}-push",
            topic=marker,
            endpoint=f"{base}/on_marker/",
            dead_letter_topic=dead_letters,
        ),
        Subscription(name=f"{tick}-push", topic=tick, endpoint=f"{base}/on_tick/", retention=_TICK_RETENTION),
        # Whoever pulls hands back what is for the next one, who need not wait for it.
        Subscription(name=f"{dead_letters}-pull", topic=dead_letters, min_backoff=timedelta(0)),
        Subscription(name=f"{notices}-pull", topic=notices, min_backoff=timedelta(0)),
    )
    return tuple(subscription.scaled(settings.time_scale) for subscription in subscriptions)
