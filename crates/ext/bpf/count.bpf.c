/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting without a scheduler: what any kernel with BPF can load, to try it. */
#include "counts.h"

char LICENSE[] SEC("license") = "GPL";

static __always_inline void has_moved(u32 cpu, u32 who, u64 span, u64 lines, u32 next)
{
}
