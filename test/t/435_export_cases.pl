# Cases that users of such tools met, through an export worker into files: large values, definitions that change between commit and decoding,
# partitions, TRUNCATE, storms of invalidations, kills in the middle of a transaction, slots that time out or cannot be made.
# CDC_LOAD_MB (default 40) is the size of the largest row.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use POSIX ();
use Test::More;
use Time::HiRes qw(time);

my $postgres = CdcBridge::Postgres->new(conf => "logical_decoding_work_mem = 64kB\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"messages": true, "schema_changes": "ignore"}')->setup;
$postgres->psql('create schema shop; create table shop.t (id int primary key, v text)');
$export->start->wait_for_state('streaming');
my $seen = 0;
# What has come since the last time.
sub fresh { $export->wait_for_all; my @all = $export->records; my @new = @all[ $seen .. $#all ]; $seen = @all; return @new; }
# What is done while the worker is away, and decoded when all of it is over.
sub while_stopped { my ($sql) = @_; $export->stop; $postgres->psql($sql); $export->start->wait_for_state('streaming'); return fresh(); }
sub said { return join(' ', map { "$_->{source}{table}:$_->{op}" } @_); }

# ---- P1, P2: values that an update does not touch, of types that are no texts
$postgres->psql(<<'SQL');
create table shop.toast (id int primary key, n int, t text, j jsonb, a text[], u uuid[], b bytea);
alter table shop.toast alter t set storage external, alter j set storage external, alter a set storage external, alter u set storage external, alter b set storage external;
insert into shop.toast select i, 0, repeat('t', 4000), jsonb_build_object('k', repeat('j', 4000)), array[repeat('a', 4000), null], array(select gen_random_uuid() from generate_series(1, 300)), decode(repeat('ff', 4000), 'hex') from generate_series(1, 2) i;
update shop.toast set n = 1 where id = 1;
update shop.toast set n = 2, t = null where id = 2;
SQL
my @new = fresh();
is(said(@new), 'toast:c toast:c toast:u toast:u', 'rows with large values');
my ($first, $second) = map { $_->{after} } @new[ 2, 3 ];
my $unknown = '__debezium_unavailable_value';
is_deeply([ $first->{t}, $first->{j}, $first->{a}, $first->{u} ], [ $unknown, $unknown, [$unknown], [$unknown] ], 'P1, P2: a value that was not touched is told as unknown, in its type\'s form, and is not NULL');
is_deeply([ exists $second->{t}, $second->{t}, $second->{j} ], [ 1, undef, $unknown ], 'P1: and what was set to NULL is NULL');
$postgres->psql("alter table shop.toast replica identity full; update shop.toast set n = 3 where id = 1");
@new = fresh();
is($new[0]{after}{t}, 't' x 4000, 'P1: with the old row in the log the value is filled in');
is_deeply($new[0]{after}{a}, [ 'a' x 4000, undef ], 'P2: arrays too');
ok(scalar(@{ $new[0]{after}{u} }) == 300, 'P2: of uuid too');

# ---- P4, P5: which row an update means
$postgres->psql('create table shop.keyless (v text); insert into shop.keyless values ($$a$$)');
is(said(fresh()), 'keyless:c', 'P4: a table that is made later without a key: inserts are shipped');
$postgres->psql('delete from shop.keyless');
is(said(fresh()), 'keyless:d', 'P4: a delete comes, and does not say of which row');
like($postgres->log_text, qr/WARNING:.*updates and deletes of table .*keyless.* do not say which row they mean/, 'P4: of which the log warns');
$postgres->psql('create table shop.by_index (id int not null, v text); create unique index by_index_key on shop.by_index (id); alter table shop.by_index replica identity using index by_index_key');
@new = while_stopped(<<'SQL');
insert into shop.by_index values (1, 'a');
update shop.by_index set id = 2;
drop index shop.by_index_key;
create unique index by_index_key on shop.by_index (id);
alter table shop.by_index replica identity using index by_index_key;
update shop.by_index set id = 3;
SQL
is_deeply([ map { [ $_->{op}, $_->{before} && $_->{before}{id}, $_->{after}{id} ] } @new ], [ [ 'c', undef, 1 ], [ 'u', 1, 2 ], [ 'u', 2, 3 ] ],
	'P5: the index of the identity is dropped and made anew: the key of before is told all the time');

# ---- P18, P20: definitions that change before the changes are decoded
$postgres->psql("create type shop.mood as enum ('sad', 'ok'); create table shop.shape (id int primary key, v text, m shop.mood); insert into shop.shape select i, 'v' || i, 'sad' from generate_series(1, 3) i");
$seen = () = fresh() && $export->records;
@new = while_stopped(<<'SQL');
insert into shop.shape values (4, 'v4', 'ok');
alter table shop.shape add d text default 'default';
update shop.shape set v = 'x' where id = 1;
alter table shop.shape rename v to w;
insert into shop.shape values (5, 'w5', 'ok', 'd5');
alter table shop.shape drop m;
insert into shop.shape values (6, 'w6', 'd6');
alter table shop.shape alter w type int using length(w);
insert into shop.shape values (7, 7, 'd7');
drop type shop.mood;
begin; savepoint s; alter table shop.shape add gone int; insert into shop.shape values (8, 8, 'd8', 8); rollback to s; insert into shop.shape values (9, 9, 'd9'); commit;
alter table shop.shape rename to shaped;
delete from shop.shaped where id = 9;
drop table shop.shaped;
SQL
is_deeply([ map { $_->{after} // $_->{before} } @new ],
	[
		{ id => 4, v => 'v4', m => 'ok' }, { id => 1, v => 'x', m => 'sad', d => 'default' }, { id => 5, w => 'w5', m => 'ok', d => 'd5' },
		{ id => 6, w => 'w6', d => 'd6' }, { id => 7, w => 7, d => 'd7' }, { id => 9, w => 9, d => 'd9' }, { id => 9 }
	],
	'P18, P20: each change as the table was when it was made: added with a default, renamed, dropped, of another type, rolled back');
is($new[-1]{source}{table}, 'shaped', 'P20: under the name that it had then');

# ---- P22: partitions
$postgres->psql(<<'SQL');
create table shop.part (id int, k int, v text, primary key (k, id)) partition by list (k);
create table shop.part_1 partition of shop.part for values in (1);
create table shop.part_2 (v text, extra int, k int not null, id int not null, primary key (k, id));
alter table shop.part_2 drop extra;
alter table shop.part attach partition shop.part_2 for values in (2);
insert into shop.part values (1, 1, 'one'), (2, 2, 'two');
create table shop.part_3 partition of shop.part for values in (3);
insert into shop.part values (3, 3, 'three');
update shop.part set k = 3 where id = 1;
alter table shop.part detach partition shop.part_2;
insert into shop.part_2 (id, k, v) values (4, 4, 'alone');
SQL
@new = fresh();
is(said(@new), 'part_1:c part_2:c part_3:c part_1:d part_3:c part_2:c', 'P22: rows of partitions come under the names of these: also of new, attached and detached ones');
is_deeply($new[1]{after}, { id => 2, k => 2, v => 'two' }, 'P22: a partition whose columns stand in another order');

# ---- P23: TRUNCATE
$postgres->psql('create table shop.owner (id int generated by default as identity primary key); create table shop.child (id int primary key, o int references shop.owner);
	insert into shop.owner values (1); insert into shop.child values (1, 1)');
$seen = () = fresh() && $export->records;
$postgres->psql('truncate shop.owner, shop.toast restart identity cascade; insert into shop.owner values (2)');
@new = fresh();
is(join(' ', sort split(/ /, said(@new))), 'child:t owner:c owner:t toast:t', 'P23: TRUNCATE of several tables, with those that CASCADE takes along');
is($new[-1]{op}, 'c', 'P23: before what comes after it');
ok((grep { $_->{op} eq 't' && ($_->{restart_identity} // $_->{source}{restart_identity}) } @new), 'P23: RESTART IDENTITY is told');
$export->is_replayed('shop', $_, 'id', "P23: $_ as the files lead to it") for qw(owner child toast);

# ---- P24, P25: numbers that are none, and long ones
$postgres->psql("create table shop.number (id int primary key, n numeric, m numeric(5,-2)); insert into shop.number values (1, 'NaN', 'NaN'), (2, 'Infinity', 1234567), (3, '-Infinity', null), (4, 1e60 + 1e-60, -50)");
$export->wait_for_all;
$export->is_replayed('shop', 'number', 'id', 'P24, P25: NaN, infinities, any number of digits, negative scale');
$seen = () = $export->records;

# ---- P12: killed in the middle of a transaction, with several rows under one place of the log and a message among them
my ($rows, $inside) = (6_000, 0);
$postgres->psql("create temp table s as select i, repeat('copied ' || i, 100) v from generate_series(1, $rows) i; copy s to '$export->{dir}/rows'");
for my $attempt (1 .. 8)
{
	$export->wait_for_state('streaming');
	$postgres->psql('truncate shop.t');
	$export->wait_for_all;
	$seen = () = $export->records;
	my ($file, $pid) = (($export->files)[-1], $export->status('pid'));
	my ($size, $until) = (-s $file, time() + 60);
	my $client = fork() // die "fork: $!";
	if (!$client)
	{
		$postgres->psql("begin; insert into shop.t values (-1, 'first'); select pg_logical_emit_message(true, 'cdc test', 'in the middle'); copy shop.t from '$export->{dir}/rows'; "
			. "insert into shop.t values (-2, 'last'); commit");
		POSIX::_exit(0);
	}
	1 until -s $file > $size + 300_000 || time() > $until;
	$postgres->kill9_process($pid);
	waitpid($client, 0);
	open(my $in, '<:raw', $file) or die "$file: $!";
	seek($in, $size, 0);
	$inside = !grep { /^\{"cdc_bridge"/ } <$in>;
	poll_until(sub { $postgres->accepts_connections }, 60);
	last if $inside;
}
ok($inside, 'P12: the worker was killed in the middle of a transaction');
$export->wait_for_state('streaming');
@new = fresh();
is(said(map { $_->{op} eq 'm' ? { %$_, source => { table => 'message' } } : $_ } @new[ 0 .. 2 ]), 't:c message:m t:c', 'P12: the transaction begins as it was made, with its message');
is(scalar(grep { $_->{op} eq 'c' } @new), $rows + 2, 'P12: and has each row once, after a kill in its middle');
is_deeply([ map { $_->{source}{seq} } @new ], [ 1 .. $rows + 3 ], 'P12: in order');
my %lsn; $lsn{ $_->{source}{lsn} }++ for @new;
cmp_ok(scalar(keys %lsn), '<', scalar(@new), 'P12: several had the same place in the log');
$export->is_replayed('shop', 't', 'id', 'P12: nothing is lost or doubled');
$seen = () = $export->records;

# ---- P15: a storm of invalidations around a transaction that stays open
$postgres->psql(<<'SQL');
do $$ begin
  for i in 1 .. 300 loop
    execute format('create table shop.storm%s (id int primary key, v text); insert into shop.storm%s values (%s, %L)', i, i, i, 'x');
    execute format('insert into shop.t values (%s, %L)', 100000 + i, 'y');
    for k in 1 .. 3 loop create temp table passing (id int); drop table passing; end loop;
    execute format('drop table shop.storm%s', i);
    if i % 3 = 0 then commit; end if;
  end loop;
end $$;
SQL
@new = fresh();
is(scalar(grep { $_->{source}{table} eq 't' && $_->{after}{v} eq 'y' } @new), 300, 'P15: rows of the table that stays');
is(scalar(grep { $_->{source}{table} eq "storm$_->{after}{id}" } @new), 300, 'P15: and of those that came and went');
my $memory = sub { my ($kb) = CdcBridge::Env::slurp("/proc/" . $export->status('pid') . '/status') =~ /^RssAnon:\s+(\d+)/m; return $kb / 1024; };
cmp_ok($memory->(), '<', 150, 'P15: the worker does not grow');

# ---- P16: a large row
my $megabytes = $ENV{CDC_LOAD_MB} && $ENV{CDC_LOAD_MB} >= 400 ? 400 : 40;
$postgres->psql("create table shop.large (id int primary key, n int, b bytea); alter table shop.large alter b set storage external;
	insert into shop.large select 1, 1, decode(repeat('00ff', $megabytes * 512 * 1024), 'hex'); update shop.large set n = 2");
$export->wait_for_all;
my ($file) = ($export->files)[-1];
my $found = '';
open(my $lines, '<:raw', $file) or die "$file: $!";
while (my $line = <$lines>)
{
	my $end = substr($line, length($line) > 400 ? -400 : 0);    # what tells the table stands behind the row
	$found .= length($line) . ($end =~ /"op":"c"/ ? " c\n" : " u\n") if $end =~ /"table":"large"/;
}
close($lines);
like($found, qr/^(\d+) c\n\d{2,4} u\n\z/, "P16: a row of $megabytes MB, and an update that does not touch its value") or diag($found);
cmp_ok(($found =~ /(\d+)/)[0], '>', $megabytes * 1024 * 1024 * 4 / 3, 'P16: all of it, in base64');
$postgres->psql("insert into shop.t values (-3, 'after it')");
$export->wait_for_all;
is(qx(tail -c 2000 '$file' | grep -c 'after it') + 0, 1, 'P16: and it goes on');
# the server's decoding leaves holes of about the size of the value in its heap
cmp_ok($memory->(), '<', $megabytes * 1.5 + 10, 'P16: the worker gives back what the document took');

# ---- P48: a slot cannot be made while a transaction is open: told, and it can be stopped
my $waiting = CdcBridge::Export->new(postgres => $postgres, name => 'waiting', tables => '{shop.t}', dir => $export->{dir});
open(my $session, '|-', $postgres->bindir . "/psql -XAtq -h '" . $postgres->host . "' -p " . $postgres->port . ' -U postgres -d postgres > /dev/null 2>&1') or die "psql: $!";
$session->autoflush(1);
print $session "begin; insert into shop.t values (-10, 'open');\n";
$postgres->poll("select count(*) from pg_stat_activity where state = 'idle in transaction' and backend_xid is not null", '1') or die 'no transaction';
$waiting->start;
ok($postgres->poll(q{select count(*) from pg_stat_activity where query like 'pipeline waiting makes its slot, which waits for transactions%'}, '1'), 'P48: a slot that waits for an open transaction is told by the worker\'s activity');
is($waiting->status('state'), 'starting', 'P48: the state is starting');
$waiting->stop;
is($postgres->psql("select count(*) from pg_replication_slots where slot_name <> '" . $export->status('slot_name') . "'"), '0', 'P48: it can be stopped while it waits, and leaves no slot');
$waiting->start;
$postgres->poll(q{select count(*) from pg_stat_activity where query like 'pipeline waiting makes its slot%'}, '1');
print $session "commit;\n";
$waiting->wait_for_state('streaming');
pass('P48: when the transaction has ended it goes on');
close($session);
$waiting->stop->drop;

# ---- P9: a slot that nobody has read for long (18)
SKIP:
{
	skip('idle_replication_slot_timeout is of 18', 3) if $postgres->major < 18;
	$export->stop;
	$postgres->psql("alter system set idle_replication_slot_timeout = '1s'");
	$postgres->psql('select pg_reload_conf()');
	ok(poll_until(sub { $postgres->psql('checkpoint'); return $postgres->psql(q{select invalidation_reason from pg_replication_slots where plugin = 'cdc_bridge'}) eq 'idle_timeout' }), 'the server gives the slot up');
	$export->start->wait_for_state('failed');
	is($export->status('last_error_sqlstate'), 'YC001', 'P9: idle_replication_slot_timeout: told');
	like($export->status('last_error_detail'), qr/The server has given up slot .* too long or too old; the sink has everything up to/, 'P9: and what the sink has');
}
$export->drop;
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');

done_testing();
