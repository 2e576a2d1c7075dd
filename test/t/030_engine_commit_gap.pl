# A source transaction stands in the binary log before a SELECT can see it. Here that moment is made as long as we like. The
# snapshot's chunks are read meanwhile; afterwards the transaction is released, and both sides must be equal.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::HeldCommit;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use Test::More;

my $source = CdcBridge::HeldCommit->source;
my $postgres = CdcBridge::Postgres->new;

$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(20) not null)',
	'insert into shop.t values ' . join(', ', map { "($_, 'old')" } 1 .. 2000));

sub is_held
{
	my ($query, $expected) = @_;
	is($source->query_value($query), $expected, 'the held transaction is in the log and not visible');
}

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 200}')->setup;

# 1. Held before the pipeline starts: its start mark must not lie behind the held transaction.
my $held = CdcBridge::HeldCommit->new($source, q{update shop.t set v = 'new' where id = 10}, 'delete from shop.t where id = 500',
	q{insert into shop.t values (3000, 'new')}, 'update shop.t set id = 4000 where id = 700');
is_held('select v from shop.t where id = 10', 'old');
$pipeline->start;
# Chunks are read while it is held. Without GTIDs or on a server that lets no mark pass the held transaction the snapshot may
# wait instead; both are right, so whichever comes first.
my $copied = poll_until(sub {
	return $postgres->psql(q{select coalesce(max(rows_copied), 0) from pg_stat_cdc_snapshot}) >= 1000 || $pipeline->state eq 'streaming'; }, 15);
note($copied ? 'chunks were read while the transaction was held' : 'the snapshot waited for the held transaction');
$held->release;
$pipeline->wait_for_tables->wait_for_catchup;
$pipeline->is_same('a transaction held across the start of the snapshot');
$pipeline->stop->drop->drop_target;

# 2. Held while it runs: the stream has it long before a chunk can see it.
$source->sql('insert into shop.t select id + 10000, v from shop.t', 'insert into shop.t select id + 100000, v from shop.t');
$pipeline->start->wait_for_state(qr/^(snapshot|streaming)$/);
$held = CdcBridge::HeldCommit->new($source, q{update shop.t set v = 'newer' where id between 100 and 200},
	'delete from shop.t where id between 1000 and 1100',
	'update shop.t set id = id + 1000000 where id between 110000 and 110050', q{insert into shop.t values (50, 'x') on duplicate key update v = 'x'});
poll_until(sub { return $pipeline->state eq 'streaming' || $postgres->psql(q{select coalesce(max(percent), 0) >= 99 from pg_stat_cdc_snapshot}) eq 't'; }, 15);
$held->release;
$pipeline->wait_for_tables->wait_for_catchup;
$pipeline->is_same('a transaction held while chunks are read');

# 3. Another table joins while a commit is held (a stop and a start in between, on the same source).
$pipeline->stop;
$held = CdcBridge::HeldCommit->new($source, q{update shop.t set v = 'last' where id < 20});
$pipeline->start->wait_for_state('streaming');
$held->release;
$pipeline->wait_for_catchup;
$pipeline->is_same('a transaction held across stop and start');

done_testing();
