/*-------------------------------------------------------------------------
 *
 * export_transaction.h
 *	  Transactions of today in a process that decodes the past.
 *
 * SPDX-License-Identifier: PostgreSQL
 *-------------------------------------------------------------------------
 */
#ifndef CDC_EXPORT_TRANSACTION_H
#define CDC_EXPORT_TRANSACTION_H

#include "postgres.h"

/* takes_snapshot false: who begins it takes one itself, after its locks. */
extern void export_transaction_begin(bool takes_snapshot);

/* Durable: before anything is done that relies on it; workers commit without waiting otherwise. Then cxt is current. */
extern void export_transaction_end(bool durable, MemoryContext cxt);

#endif							/* CDC_EXPORT_TRANSACTION_H */
