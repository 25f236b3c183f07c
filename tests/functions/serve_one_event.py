"""Loads an entry point as functions-framework does, serves one event, and says which modules are loaded then.

Run in a process of its own: `serve_one_event.py SOURCE TARGET REQUEST`. Its last line is JSON:
the status, and the file of each module.
"""

from __future__ import annotations

import json
import sys

import functions_framework

source, target, request = sys.argv[1:]
client = functions_framework.create_app(target, source).test_client()
answer = client.post("/", json=json.loads(request))
loaded = {
    name: file for name, module in list(sys.modules.items()) if (file := getattr(module, "__file__", None))
}
sys.stdout.write(json.dumps([answer.status_code, loaded]))
