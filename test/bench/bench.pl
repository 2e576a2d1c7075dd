#!/usr/bin/perl
# bench.pl: snapshot and catch-up of one pipeline in rows per second, and COPY of the same rows for comparison. Called by run.
use strict;
use warnings;

use CdcBridge::Env qw(new_folder);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Shop qw(create_shop fill_shop);
use CdcBridge::Source;
use Time::HiRes qw(time);

my $rows = $ENV{BENCH_ROWS} || 200_000;
my $source = CdcBridge::Source->new(args => ['--innodb-buffer-pool-size=512M']);
my $postgres = CdcBridge::Postgres->new(conf => "shared_buffers = 512MB\nmax_wal_size = 4GB\n");
create_shop($source);
fill_shop($source, $rows);
my @tables = qw(orders order_item payment);
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{' . join(',', map { "shop.$_" } @tables) . '}')->setup;
printf "%s, %s, %d orders, tables @tables\n\n", $postgres->{version}, $source->query_value('select version()'), $rows;

sub report { my ($what, $count, $seconds) = @_; printf "%-34s %9d rows %7.2f s %10.0f rows/s\n", $what, $count, $seconds, $count / $seconds; return $count / $seconds; }

my $start = time();
$pipeline->start->wait_for_tables;
my $copied = $postgres->psql('select sum(rows_copied) from pg_stat_cdc_snapshot');
my $snapshot = report('snapshot', $copied, time() - $start);

# the same rows out of a file into tables with the same primary keys
my $folder = new_folder('bench');
my $copy_seconds = 0;
for my $table (@tables)
{
	$postgres->psql("copy shop.$table to '$folder/$table'; create table public.$table (like shop.$table including all)");
	$start = time();
	$postgres->psql("copy public.$table from '$folder/$table'");
	$copy_seconds += time() - $start;
}
my $copy = report('COPY from a file', $copied, $copy_seconds);

# catch up: the same number of rows again as inserts of 100 rows, and one update of every order
$pipeline->wait_for_catchup->stop;
my ($first, $step) = (10_000_000, 100);
my $dbh = $source->connect;
for (my $id = 1; $id <= $rows; $id += $step)
{
	$dbh->do("insert into shop.orders select id + $first, customer_id, status, total, note, placed_at from shop.orders where id between $id and $id + $step - 1");
}
for (my $id = 1; $id <= $rows; $id += $step)
{
	$dbh->do("update shop.orders set total = total + 1 where id between $id and $id + $step - 1");
}
$start = time();
$pipeline->start->wait_for_catchup(1800);
my $stream = report('catch-up: inserts, then updates', 2 * $rows, time() - $start);

printf "\nsnapshot is %.2f, catch-up %.2f times the speed of COPY\n", $snapshot / $copy, $stream / $copy;
die "the sides differ:\n$pipeline->{difference}" unless $pipeline->same_rows(@tables);
