# cells: pg15 pg17 pg18
# Transactions that are streamed while they run, those that are prepared, and savepoints: what the marks say and what is left in the end.
# takes: 28 s

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\nmax_prepared_transactions = 5\n")->allow_output_plugin;
$postgres->psql('create table t (id int primary key, v text); create table u (id int primary key)');
my $slot = CdcBridge::Decode->new($postgres, 'a');
my @with = (streaming => 'on');

# Follow the marks: rows of streamed transactions count when these commit, without what was taken back.
sub kept
{
	my (@records) = @_;
	my ($block, %open, @kept);
	for my $r (@records)
	{
		my $op = $r->{op};
		if ($op eq 'stream_start') { die 'a block in a block' if defined $block; $block = $r->{xid}; }
		elsif ($op eq 'stream_stop') { die 'no block ends' unless defined $block && $block == $r->{xid}; undef $block; }
		elsif ($op eq 'stream_abort') { $open{ $r->{xid} } = $r->{subxid} ? [ grep { ($_->{subxid} // 0) != $r->{subxid} } @{ $open{ $r->{xid} } } ] : []; }
		elsif ($op =~ /^stream_(commit|prepare)$/) { push @kept, @{ delete $open{ $r->{xid} } // [] }; }
		elsif ($op =~ /^(begin|commit)$/) { }
		elsif (defined $block) { die "row of $r->{xid} in block of $block" unless $r->{xid} == $block; push @{ $open{$block} }, $r; }
		else { push @kept, $r; }
	}
	die 'a block has no end' if defined $block;
	return @kept;
}

# ---- P17: large, with savepoints
$postgres->psql(<<'SQL');
begin;
insert into t select g, repeat('a', 100) from generate_series(1, 1000) g;
savepoint s1;
insert into t select g, repeat('b', 100) from generate_series(2001, 3000) g;
rollback to s1;
savepoint s2;
insert into t select g, repeat('c', 100) from generate_series(4001, 5000) g;
release s2;
update t set v = 'u' where id <= 10;
commit;
insert into u values (1);
begin;
insert into t select g, repeat('d', 100) from generate_series(6001, 7000) g;
rollback;
SQL
my @plain = $slot->peek;
my @streamed = $slot->peek(@with);
my $count = sub { my ($op) = @_; return scalar grep { $_->{op} eq $op } @streamed; };
cmp_ok($count->('stream_start'), '>', 3, 'P17: several blocks');
is($count->('stream_start'), $count->('stream_stop'), 'P17: each of which ends');
is($count->('stream_commit'), 1, 'P17: one commit');
cmp_ok((grep { $_->{op} eq 'stream_abort' && $_->{subxid} } @streamed), '>=', 1, 'P17: the savepoint is taken back');
ok((grep { $_->{op} eq 'insert' && $_->{row}{id} > 2000 && $_->{row}{id} <= 3000 } @streamed), 'P17: ... whose rows had been shipped');
is_deeply([ map { [ $_->{op}, $_->{row} ] } kept(@streamed) ], [ map { [ $_->{op}, $_->{row} ] } @plain ], 'P17: what is left is what comes at commit');
is(scalar(@plain), 2011, '... all of it');
ok(!(grep { $_->{op} eq 'insert' && exists $_->{time} && $_->{xid} == $streamed[0]{xid} } @streamed), 'while it runs nobody knows when it commits');
ok((grep { $_->{op} eq 'stream_commit' && $_->{time} } @streamed), '... and its commit tells');

my @debezium = $slot->peek(@with, format => 'debezium-json');
is_deeply([ sort keys %{ { map { $_->{status} => 1 } grep { $_->{status} } @debezium } } ], [ sort qw(STREAM_START STREAM_STOP STREAM_COMMIT STREAM_ABORT) ], 'Debezium: marks of streams come without being asked for');
is(scalar(keys %{ { map { $_->{id} => 1 } grep { $_->{status} && $_->{id} eq $streamed[0]{xid} } @debezium } }), 1, 'Debezium: a streamed transaction has one name');
$slot->skip;

# ---- of which nothing is shipped
$postgres->psql(q{begin; insert into t select g, repeat('e', 100) from generate_series(10001, 11000) g; commit});
is_deeply([ $slot->take(@with, tables => 'public.u') ], [], 'a streamed transaction of which nothing is shipped gives no record');

# ---- messages, TRUNCATE, DDL in a stream
$postgres->psql(<<'SQL');
begin;
insert into t select g, repeat('f', 100) from generate_series(20001, 21000) g;
select pg_logical_emit_message(true, 'p', 'm');
alter table t add column w int default 7;
insert into t select g, repeat('g', 100) from generate_series(22001, 23000) g;
truncate t;
insert into t select g, repeat('h', 100) from generate_series(24001, 25000) g;
commit;
SQL
is_deeply([ map { [ $_->{op}, $_->{row} ] } kept($slot->peek(@with, messages => 'on')) ], [ map { [ $_->{op}, $_->{row} ] } $slot->peek(messages => 'on') ], 'messages, TRUNCATE and DDL in a stream');
$slot->skip;

# ---- two at once
my @sessions = map { open(my $psql, '|-', $postgres->bindir . '/psql', '-qX', '-h', $postgres->host, '-p', $postgres->port, '-U', 'postgres', '-d', 'postgres', '-o', '/dev/null') or die; $psql->autoflush(1); $psql } 1, 2;
for my $round (1 .. 4)
{
	for my $n (0, 1)
	{
		my $from = 100_000 * ($n + 1) + 1000 * $round;
		print { $sessions[$n] } ($round == 1 ? 'begin; ' : '') . "insert into t select g, repeat('z', 100) from generate_series($from, $from + 500) g;\n";
		$postgres->poll("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%generate_series($from,%'", '1') or die 'a session does not come along';
	}
}
print { $sessions[1] } "commit;\n";
$postgres->poll('select count(*) from t where id > 200000', '2004') or die 'a session does not commit';
print { $sessions[0] } "commit;\n";
close($_) for @sessions;
@streamed = $slot->peek(@with);
# one that the slot was past may be streamed too, until its end tells that, and is taken back: it does not count
my %committed = map { $_->{xid} => 1 } grep { $_->{op} eq 'stream_commit' } @streamed;
my ($first_commit) = grep { $streamed[$_]{op} eq 'stream_commit' } 0 .. $#streamed;
my %begun = map { $_->{xid} => 1 } grep { $_->{op} eq 'stream_start' && $committed{ $_->{xid} } } @streamed[ 0 .. $first_commit // -1 ];
is(scalar(keys %begun), 2, 'two transactions were streamed at once');
is_deeply([ map { $_->{row}{id} } kept(@streamed) ], [ map { $_->{row}{id} } $slot->peek ], '... and what is left comes in the order of commits');
is(scalar($slot->take), 4008, '... all of it');

# ---- two phases
my $two = CdcBridge::Decode->new($postgres, 'two', two_phase => 1);
$postgres->psql(<<'SQL');
begin; insert into u values (10); prepare transaction 'first';
insert into u values (11);
begin; insert into u values (12); prepare transaction 'second';
rollback prepared 'second';
commit prepared 'first';
SQL
my @records = $two->peek;
is_deeply([ map { [ $_->{op}, $_->{gid} // $_->{row}{id} ] } @records ],
	[ [ 'begin_prepare', 'first' ], [ 'insert', 10 ], [ 'prepare', 'first' ], [ 'insert', 11 ], [ 'begin_prepare', 'second' ], [ 'insert', 12 ], [ 'prepare', 'second' ], [ 'rollback_prepared', 'second' ], [ 'commit_prepared', 'first' ] ],
	'two phases: changes at PREPARE, what becomes of them later, marks without being asked for');
is_deeply([ map { $_->{status} // $_->{op} } $two->take(format => 'debezium-json') ], [ qw(BEGIN_PREPARE c PREPARE c BEGIN_PREPARE c PREPARE ROLLBACK_PREPARED COMMIT_PREPARED) ], '... in Debezium\'s form');
is_deeply([ map { $_->{row}{id} } $slot->take ], [ 11, 10 ], 'without two phases: at COMMIT PREPARED, in the order of commits');
$postgres->psql(q{begin; insert into t select g, repeat('p', 100) from generate_series(300001, 301000) g; prepare transaction 'large'; commit prepared 'large'});
@records = $two->take(@with);
is_deeply([ (map { $_->{op} } grep { $_->{op} =~ /prepare/ } @records) ], [ qw(stream_prepare commit_prepared) ], 'a streamed transaction that is prepared');
is(scalar(kept(@records)), 1001, '... with its rows (and the mark of its end)');

done_testing();
