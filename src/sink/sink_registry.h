/*-------------------------------------------------------------------------
 *
 * sink_registry.h
 *	  Schemas of documents in a registry, as Confluent's has them.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_SINK_REGISTRY_H
#define CDC_SINK_REGISTRY_H

#include "sink/sink.h"

typedef struct SinkRegistry SinkRegistry;

/* The registry that the server's options name, in CurrentMemoryContext; throws when they name none. */
extern SinkRegistry *sink_registry_open(const CdcSinkTarget *target);

/* See to it that the format knows the numbers of all schemas that a record is written by; topic: where it goes, NULL: the sink has none. */
extern void sink_registry_complete(const SinkRegistry *registry, CdcFormat *format, const CdcRecord *record, const char *topic);

#endif							/* CDC_SINK_REGISTRY_H */
