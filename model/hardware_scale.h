/*
 * What a changed link does to the collectives on it. A profile states what collectives reach on the
 * links that it has; `--set hw.links.NAME.bandwidth_gb_per_s` asks for others.
 */
#ifndef STEPCAST_MODEL_HARDWARE_SCALE_H
#define STEPCAST_MODEL_HARDWARE_SCALE_H

#include "model/hardware.h"

/* Where a link's bandwidth is not what `stated` (the same profile before the change) has, the bus
 * bandwidths of its level change in proportion, those of variants and of NCCL's channels too.
 * Between nodes they do not grow past what the level inside a node reaches: its links carry the
 * same bytes. A bus bandwidth that was itself changed stays as it was set; latencies stay. */
void sc_hardware_follow_links(const struct sc_hardware *stated, struct sc_hardware *hardware);

#endif
