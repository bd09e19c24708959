/* SPDX-License-Identifier: GPL-2.0-only */
/* Counting without a scheduler: what any kernel with BPF can load, to try it. */
#include "counts.h"

char LICENSE[] SEC("license") = "GPL";
