/*
 * Copies between places: latency + bytes / the slowest of what they cross. Device and host are
 * joined by the profile's host link (pageable host memory reaches a share of it); both ends'
 * memories are used; the disk has a rate for reading and one for writing. Without a host link
 * (cores) a copy is the processor's own: one read and one write of memory.
 */
#ifndef STEPCAST_MODEL_COST_COPY_H
#define STEPCAST_MODEL_COST_COPY_H

#include "base/status.h"
#include "model/cost.h"
#include "model/hardware.h"

/* Fails when the profile lacks a place or a link that the copy needs. */
enum sc_status sc_cost_copy(const struct sc_hardware *hardware, enum sc_hw_place from,
                            enum sc_hw_place to, double bytes, struct sc_cost *out,
                            struct sc_error *err);

#endif
