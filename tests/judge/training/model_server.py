"""Serves a folder of `mast-trace train run` as OpenAI's chat completions, until its input ends; prints its address.

Usage: model_server.py FOLDER TOKENS
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

FOLDER, TOKENS = sys.argv[1], int(sys.argv[2])
MODEL = AutoModelForCausalLM.from_pretrained(FOLDER)
TOKENIZER = AutoTokenizer.from_pretrained(FOLDER)


def answer(messages: list[dict[str, str]]) -> str:
    """Return the model's likeliest answer."""
    given = TOKENIZER.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.inference_mode():
        made = MODEL.generate(**given, do_sample=False, max_new_tokens=TOKENS)
    return TOKENIZER.decode(made[0, given["input_ids"].shape[1] :], skip_special_tokens=True)


class Handler(BaseHTTPRequestHandler):
    """Answers each request with one choice."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = {"role": "assistant", "content": answer(asked["messages"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        told = {"id": "1", "object": "chat.completion", "created": 0, "model": asked["model"]}
        body = json.dumps({**told, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdout.write(f"http://127.0.0.1:{server.server_port}\n")
sys.stdout.flush()
sys.stdin.read()
