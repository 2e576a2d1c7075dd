# Random transactions - subtransactions that are rolled back, large ones that are spilled, DDL in between, TOAST - while workers and the
# postmaster are killed at random moments: the files replayed are the tables, every committed change once, in the order of commits.
# CDC_TEST_ROUNDS (default 20) and CDC_SEED choose; the seed is printed.
# cells: pg15 pg17 pg18
# takes: 45 s

use strict;
use warnings;

use CdcBridge::Export;
use CdcBridge::ExportRounds;
use CdcBridge::Postgres;
use Test::More;

my $rounds = CdcBridge::ExportRounds->new;
my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
my $export = CdcBridge::Export->new(postgres => $postgres, server_options => ", file_max_kb '512'")->setup;
$rounds->make_tables($postgres);
$export->start->wait_for_state('streaming');
$rounds->run(postgres => $postgres, export => $export, cases => 'P12, P17, P20', again => 431);

# commits in their order: positions of the changes' transactions never step back
my ($last, $back) = (0, 0);
for my $end (@{ $export->{ends} }) { $back++ if $end < $last; $last = $end; }
is($back, 0, 'P13: positions never step back');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
