"""What the pinned engine build knows: architectures, tensor types, file types, names of FIM tokens."""

from __future__ import annotations

_ARCHITECTURES = """
    llama llama4 deci falcon baichuan grok gpt2 gptneox mpt starcoder refact bloom stablelm qwen
qwen2 qwen2moe     qwen3 qwen3moe phi2 phi3 phimoe plamo codeshell orion internlm2 minicpm minicpm3
gemma gemma2 gemma3 gemma3n     gemma4 starcoder2 xverse command-r cohere2 dbrx olmo olmo2 olmoe
openelm arctic deepseek deepseek2 chatglm     glm4 glm4moe bitnet jais jais2 nemotron exaone exaone4
exaone-moe granite granitemoe plm bailingmoe     bailingmoe2 dots1 arcee afmoe ernie4_5 ernie4_5-moe
hunyuan-moe hunyuan-dense smollm3 gpt-oss smallthinker     seed_oss grovemoe apertus minimax-m2
mistral3 mistral4 mimo2 maincoder mellum
"""
ARCHITECTURES = frozenset(_ARCHITECTURES.split())
"""Text decoders with a key-value cache, present in the engine's library."""

_RECURRENT = """
    rwkv6 rwkv6qwen2 rwkv7 arwkv7 mamba mamba2 jamba plamo2 plamo3 nemotron_h nemotron_h_moe
granitehybrid     falcon-h1 lfm2 lfm2moe qwen3next qwen35 qwen35moe kimi-linear
"""
RECURRENT = frozenset(_RECURRENT.split())
"""Known to llama.cpp, but their state cannot be cut back to a prefix, which the cache needs."""

_OTHER = """
    clip bert modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 eurobert
gemma-embedding     t5 t5encoder llama-embed wavtokenizer-dec dream llada llada-moe rnd1 qwen2vl
qwen3vl qwen3vlmoe chameleon     cogvlm paddleocr deepseek2-ocr hunyuan_vl
"""
OTHER = frozenset(_OTHER.split())
"""Encoders, diffusion and vision models: no left-to-right text completion."""

TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
"""ggml type → (name, elements in a block, bytes of a block)."""

FILE_TYPES: dict[int, str] = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4",
    39: "NVFP4",
    40: "Q1_0",
}
"""`general.file_type` → name."""

FIM_TEXTS: dict[bytes, str] = {
    b"<|fim_prefix|>": "pre",
    b"<fim-prefix>": "pre",
    b"<fim_prefix>": "pre",
    "<\uff5cfim\u2581begin\uff5c>".encode(): "pre",
    b"<|code_prefix|>": "pre",
    b"<|prefix|>": "pre",
    b"<|fim_suffix|>": "suf",
    b"<fim-suffix>": "suf",
    b"<fim_suffix>": "suf",
    "<\uff5cfim\u2581hole\uff5c>".encode(): "suf",
    b"<|code_suffix|>": "suf",
    b"<|suffix|>": "suf",
    b"<|fim_middle|>": "mid",
    b"<fim-middle>": "mid",
    b"<fim_middle>": "mid",
    "<\uff5cfim\u2581end\uff5c>".encode(): "mid",
    b"<|code_middle|>": "mid",
    b"<|middle|>": "mid",
    b"<|fim_pad|>": "pad",
    b"<fim-pad>": "pad",
    b"<fim_pad>": "pad",
    b"<|fim_repo|>": "rep",
    b"<|repo_name|>": "rep",
    b"<fim-repo>": "rep",
    b"<reponame>": "rep",
    b"<|file_sep|>": "sep",
}
"""Token texts by which llama.cpp itself finds FIM ids when a file's metadata does not name them."""
