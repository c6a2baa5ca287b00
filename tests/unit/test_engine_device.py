"""What llama.cpp says while loading."""

from __future__ import annotations

from daemon.engine.device import Log

MIB = 1024 * 1024
SAID = """\
load_tensors:   CPU_Mapped model buffer size =   462.96 MiB
load_tensors:   CPU_REPACK model buffer size =    28.00 MiB
llama_context:        CPU  output buffer size =     9.50 MiB
llama_kv_cache:        CPU KV buffer size =    96.00 MiB
llama_kv_cache: size =   96.00 MiB (  8192 cells,  24 layers, 17/1 seqs), K (f16):   48.00 MiB
sched_reserve:      CUDA0 compute buffer size =    20.00 MiB
sched_reserve:        CPU compute buffer size =     4.50 MiB"""


def test_sizes_are_read_from_what_llama_cpp_says() -> None:
    log = Log()
    log.close()
    log.lines = SAID.splitlines()
    assert log.sizes() == (34 * MIB, 96 * MIB)
    assert log.repacked() == 28 * MIB
    log.lines = []
    assert (log.sizes(), log.repacked()) == ((0, 0), 0)
