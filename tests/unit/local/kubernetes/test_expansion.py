"""Words of a container as Kubernetes hands them on: variables filled in, dollars halved."""

from __future__ import annotations

import pytest

from runtender.local.kubernetes.containers import expand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(NAME)", "value"),
        ("$$(NAME)", "$(NAME)"),
        ("$$$(NAME)", "$value"),
        ("$(OTHER)", "$(OTHER)"),
        ("echo $$(date +%s) $$", "echo $(date +%s) $"),
        ("$HOME and $", "$HOME and $"),
        ("$(NAME", "$(NAME"),
        ("$()", "$()"),
    ],
)
def test_a_word_is_handed_on_as_kubernetes_does(text, expected):
    assert expand(text, {"NAME": "value"}) == expected
