# What can come between the chunks of an initial copy and the stream: commits that nobody sees yet, TRUNCATE, rows that move without
# their large values, another definition, another name, tables that go, come and are copied anew. Each arranged on purpose.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Export;
use CdcBridge::Postgres;
use POSIX ();
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "max_prepared_transactions = 5\n");
my $export = CdcBridge::Export->new(postgres => $postgres, options => '{"snapshot_chunk_rows": 4, "flush_max_ms": 10}')->setup;
my @sessions;

# SQL in a session of its own, whose application_name is NAME; it may take as long as it likes.
sub in_background
{
	my ($name, $sql) = @_;
	my $pid = fork() // die "fork: $!";
	if (!$pid) { $postgres->try_psql("set application_name = '$name'; $sql"); POSIX::_exit(0); }
	push @sessions, $pid;
	return;
}

sub rows_read
{
	my ($table) = @_;
	my @records = grep { ($_->{source}{table} // '') eq $table } $export->records;
	my $n = 0;
	for (@records) { my $op = $_->{op} // ''; $n = $op eq 't' ? 0 : $n + ($op eq 'r'); }
	return $n;
}

sub table_state { my ($table) = @_; return $postgres->psql("select state from pg_stat_cdc_export_table where table_name = '$table'"); }

# Begin a copy of a table and stop the pipeline when it has come a part of the way.
sub stop_midway
{
	my ($table) = @_;
	my $rows = $postgres->psql("select count(*) from shop.$table");
	my $copied = sub { return $postgres->psql("select coalesce(max(rows_copied), 0) from pg_stat_cdc_export_table where table_name = '$table' and state = 'snapshot'"); };
	for (1 .. 10)
	{
		$postgres->psql("select cdc_resync_table('shop_out', 'shop.$table')");
		poll_until(sub { my $n = $copied->(); return $n > 0 && $n < $rows / 3; }, 2);
		$export->stop;
		my $n = $copied->();
		return if $n > 0 && $n < $rows * 2 / 3;
		$export->start;
	}
	die "no copy of $table could be stopped midway\n" . $export->describe;
}

# What the stream has to decode before it comes to what follows: a chunk is read meanwhile.
sub backlog { $postgres->psql("do \$\$ begin for i in 1 .. 40 loop insert into shop.noise select g, i from generate_series(1, 100) g; commit; end loop; end \$\$"); return; }

sub go_on
{
	my ($name, @tables) = @_;
	$export->start->wait_for_state('streaming')->wait_for_all;
	$export->is_replayed('shop', $_->[0], $_->[1], $name) for @tables;
	return;
}

$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, v text, big text);
alter table shop.t alter column big set storage external;
insert into shop.t select i * 10, 'v' || i, repeat(md5(i::text), case when i % 100 = 0 then 80 else 1 end) from generate_series(1, 2500) i;
create table shop.noise (n int, i int);
alter table shop.noise replica identity full;
create table shop.held (id int primary key);
create table shop.here (id int primary key, v text);
insert into shop.here values (1, 'one'), (2, 'two');
SQL
$export->start->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 't', 'id', 'the first copy');
is(rows_read('t'), 2500, 'each row once');
is($postgres->psql("select string_agg(table_name || ' ' || state || ' ' || rows_copied, ', ' order by table_name) from pg_stat_cdc_export_table"),
	'held streaming 0, here streaming 2, noise streaming 0, t streaming 2500', 'the view tells how far each table is');

# ---- commits that stand in the log and that nobody sees: they wait for a synchronous standby that is not there

$postgres->psql("alter system set synchronous_standby_names = 'nobody'; alter system set synchronous_commit = local");
$postgres->psql('select pg_reload_conf()');
$postgres->poll('show synchronous_standby_names', 'nobody') or die "the standby's name does not come\n";
in_background('first', "set synchronous_commit = on; insert into shop.here values (3, 'held when the worker starts')");
my $held = sub { return "select count(*) from pg_stat_activity where application_name = '$_[0]' and wait_event = 'SyncRep'"; };
ok($postgres->poll($held->('first'), '1'), 'a commit is held');
$postgres->psql("select cdc_resync_table('shop_out', 'shop.here')");
$export->wait_for_state('snapshot');
$postgres->psql("insert into shop.noise values (1, 1)");
$export->wait_for_all;
in_background('second', "set synchronous_commit = on; insert into shop.here values (4, 'held when it was decoded')");
ok($postgres->poll($held->('second'), '1'), 'and another one');
$postgres->psql("insert into shop.noise values (2, 2)");
$export->wait_for_all;
is(table_state('here'), 'snapshot', 'no chunk is read before the first is seen');
$postgres->psql("select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'first'");
ok($postgres->poll('select count(*) from shop.here where id = 3', '1'), 'the first is seen');
$postgres->psql("insert into shop.noise values (3, 3)");
$export->wait_for_all;
poll_until(sub { return table_state('here') ne 'snapshot'; }, 1);
is(table_state('here'), 'snapshot', 'nor before the second is, which was decoded');
is((grep { ($_->{source}{table} // '') eq 'noise' } $export->records) > 0, 1, 'the stream goes on meanwhile');
$postgres->psql("select pg_cancel_backend(pid) from pg_stat_activity where application_name = 'second'");
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 'here', 'id', 'P46: commits that are decoded before others see them are in the chunk');
$postgres->psql("alter system reset synchronous_standby_names; alter system reset synchronous_commit");
$postgres->psql('select pg_reload_conf()');

# ---- transactions that chunks saw before the stream came to them

stop_midway('t');
backlog();
$postgres->psql("insert into shop.t select i * 10 + 5, 'between', 'x' from generate_series(1, 2500) i; delete from shop.t where id % 50 = 0; update shop.t set v = 'changed' where id % 70 = 0");
my $before = $export->records;
go_on('what chunks saw is not shipped again', [ 't', 'id' ]);
my ($last_noise) = grep { ($export->{records}[$_]{source}{table} // '') eq 'noise' } reverse 0 .. $#{ $export->{records} };
cmp_ok(scalar(grep { ($_->{source}{table} // '') eq 't' && ($_->{op} // '') eq 'r' && $_->{after}{v} eq 'between' } @{ $export->{records} }[ $before .. $last_noise ]), '>', 0,
	'chunks were read while the stream had not come there');

# ---- TRUNCATE that a part of the chunks saw

stop_midway('t');
backlog();
$postgres->psql("truncate shop.t; insert into shop.t select i, 'after', 'x' from generate_series(1, 100, 3) i; insert into shop.t select i, 'new', repeat(md5(i::text), case when i > 8990 or i = 7001 then 80 else 1 end) from generate_series(7000, 9000) i");
go_on('TRUNCATE that some chunks saw and others did not', [ 't', 'id' ]);
my $made = 0;
for my $record (grep { ($_->{source}{table} // '') eq 't' } $export->records) { $made = $record->{op} eq 't' && $record->{source}{snapshot} eq 'false' ? 0 : $made + ($record->{op} eq 'r'); }
cmp_ok($made, '>', 2000, 'and the copy began anew behind it');

# ---- a row that moves to where the copy has been, without the large value that was not touched

stop_midway('t');
backlog();
$postgres->psql("update shop.t set id = 2 where id = 9000; update shop.t set id = 3 where id = 8998; update shop.t set v = 'again' where id = 3; update shop.t set id = 0 where id = 7001");
go_on('rows that move over the end of what is copied, without their large values', [ 't', 'id' ]);
is((grep { $_->{op} eq 'c' && ($_->{after}{big} // '') eq '__debezium_unavailable_value' } grep { $_->{op} } $export->records), 0, 'no row is made without a value');

# ---- another definition in the middle

stop_midway('t');
backlog();
$postgres->psql("alter table shop.t add column extra int default 7; insert into shop.t values (200, 'with extra', 'x', 8); update shop.t set v = 'changed' where id = 8000");
go_on('');
my %rows = $export->replay('shop', 't', 'id');
is(join(' ', map { "$_:$rows{$_}{v}:" . ($rows{$_}{extra} // 7) } sort { $a <=> $b } keys %rows),
	$postgres->psql("select string_agg(id || ':' || v || ':' || extra, ' ' order by id) from shop.t"), 'P18: a column with a default that is added in the middle of a copy');
is($rows{8999} ? $rows{8999}{extra} : 'no row', 7, 'P18: rows that are copied after that have the default');

stop_midway('t');
backlog();
$postgres->psql("update shop.t set v = 'before it' where id > 8900; alter table shop.t alter column id type bigint; insert into shop.t values (5000000000, 'large', 'x', 8); delete from shop.t where id in (0, 8500)");
go_on('another type of the key: the copy begins anew', [ 't', 'id' ]);

stop_midway('t');
$postgres->psql("alter table shop.t rename to u; update shop.u set v = 'renamed' where id > 8990; delete from shop.u where id = 1");
go_on('another name: a copy under the new one', [ 'u', 'id' ]);
is(scalar(keys %{ { $export->replay('shop', 't', 'id') } }), 0, 'and nothing is left under the former one');

$postgres->psql("select cdc_resync_table('shop_out', 'shop.u')");
poll_until(sub { return $postgres->psql("select coalesce(max(rows_copied), 0) from pg_stat_cdc_export_table where table_name = 'u' and state = 'snapshot'") > 0; }, 2);
$postgres->psql('alter table shop.u alter column id type numeric');
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 'u', 'id', 'another type of the key while chunks are read');

# ---- tables that go in the middle

stop_midway('u');
backlog();
$postgres->psql("insert into shop.u values (-1, 'last', 'x', 1); drop table shop.u");
$export->start->wait_for_state('streaming')->wait_for_all;
is(scalar(keys %{ { $export->replay('shop', 'u', 'id') } }), 0, 'a table that is dropped in the middle of its copy leaves nothing behind');
is($postgres->psql("select count(*) from pg_stat_cdc_export_table where table_name = 'u'"), '0', 'also in the view');

# ---- and one that has a successor of the same name

$postgres->psql("create table shop.again (id int primary key, v text); insert into shop.again select i, 'first' from generate_series(1, 2500) i");
stop_midway('again');
$postgres->psql("drop table shop.again; create table shop.again (id int primary key, v text); insert into shop.again select i, 'second' from generate_series(2000, 2010) i");
go_on('a table that is dropped in the middle of its copy and made anew', [ 'again', 'id' ]);

# the same while the worker runs, and the copy is held up by a commit that nobody sees
$postgres->psql("truncate shop.again; insert into shop.again select i, 'first' from generate_series(1, 4000) i; alter system set synchronous_standby_names = 'nobody'; alter system set synchronous_commit = local");
$postgres->psql('select pg_reload_conf()');
$postgres->poll('show synchronous_standby_names', 'nobody') or die "the standby's name does not come\n";
$postgres->psql("select cdc_resync_table('shop_out', 'shop.again')");
ok($postgres->poll("select coalesce(max(rows_copied), 0) > 0 from pg_stat_cdc_export_table where table_name = 'again' and state = 'snapshot'", 't'), 'a copy is under way');
in_background('third', 'set synchronous_commit = on; insert into shop.held values (3)');
ok($postgres->poll($held->('third'), '1'), 'and held up');
$postgres->psql("drop table shop.again; create table shop.again (id int primary key, v text); insert into shop.again select i, 'third' from generate_series(1, 11) i");
$export->wait_for_all;
$export->is_replayed('shop', 'again', 'id', 'what came of the former table is taken back before the rows of its successor');
$postgres->psql("alter system reset synchronous_standby_names; alter system reset synchronous_commit");
$postgres->psql("select pg_reload_conf(), pg_cancel_backend(pid) from pg_stat_activity where application_name = 'third'");
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('shop', 'again', 'id', 'and not once more after them');

# ---- a table that somebody has locked

$postgres->psql("begin; lock table shop.held in access exclusive mode; prepare transaction 'locker'");
ok($postgres->poll("select count(*) from pg_locks where relation = 'shop.held'::regclass and mode = 'AccessExclusiveLock' and granted", '1'), 'a table is locked');
$postgres->psql("select cdc_resync_table('shop_out', 'shop.held'), cdc_resync_table('shop_out', 'shop.here')");
ok($postgres->poll("select state from pg_stat_cdc_export_table where table_name = 'here' and finished_at > now() - interval '1 minute'", 'streaming'), 'others are copied meanwhile');
$postgres->psql("insert into shop.here values (10, 'while it waits')");
$export->wait_for_all;
$export->is_replayed('shop', 'here', 'id', 'and changes go on');
is($export->status('state') . ' ' . table_state('held'), 'snapshot snapshot', 'the copy of that one waits');
is($postgres->psql("select count(*) from pg_stat_activity where backend_type like 'cdc_bridge export%' and backend_xmin is not null"), '0', 'and holds back no xmin');
$postgres->psql("rollback prepared 'locker'");
$export->wait_for_state('streaming');

# ---- tables that come

$postgres->psql("create table shop.made (id int primary key); insert into shop.made values (1), (2)");
$export->wait_for_all;
is(rows_read('made'), 0, 'a table that is made later needs no copy');
$export->is_replayed('shop', 'made', 'id', 'its rows come by the stream');
$postgres->psql("create schema more; create table more.a (id int primary key); insert into more.a values (1), (2), (3)");
$postgres->psql("select cdc_add_table('shop_out', 'more.*')");
$export->wait_for_state('streaming');
$postgres->psql('insert into more.a values (4)');
$export->wait_for_all;
is(rows_read('a'), 3, 'cdc_add_table: the rows of a table that joins are copied');
$export->is_replayed('more', 'a', 'id', 'and its changes follow');
$postgres->psql("select cdc_remove_table('shop_out', 'more.a')");
$export->wait_for_state('streaming');
$postgres->psql('insert into more.a values (5); delete from more.a where id = 1');
$export->wait_for_all;
is(join(',', sort keys %{ { $export->replay('more', 'a', 'id') } }), '1,2,3,4', 'cdc_remove_table: nothing more comes of a table');
$postgres->psql("select cdc_add_table('shop_out', 'more.a')");
$export->wait_for_state('streaming')->wait_for_all;
$export->is_replayed('more', 'a', 'id', 'a table that comes back is copied anew');
like($postgres->psql_error("select cdc_resync_table('shop_out', 'more.b')"), qr/"more\.b" .*has not joined/, 'a table that is not there cannot be copied anew');

# ---- rights

$postgres->psql(<<'SQL');
create role exporter login;
grant usage on foreign server files to exporter;
grant usage on schema shop to exporter;
grant execute on function cdc_start_pipeline to exporter;
create table shop.secret (id int primary key, who text);
insert into shop.secret values (1, 'postgres'), (2, 'exporter');
alter table shop.secret enable row level security;
create policy own on shop.secret using (who = current_user);
grant select on shop.secret to exporter;
SQL
my $start = "select cdc_start_pipeline('secret_out', sink => 'files', tables => '{shop.secret}')";
like($postgres->psql_error($start, user => 'exporter'), qr/row-level security of table shop\.secret applies to the owner/, 'row-level security that hides rows is told');
$postgres->psql('alter role exporter bypassrls');
$postgres->psql($start, user => 'exporter');
ok($postgres->poll("select state from pg_stat_cdc_export where pipeline = 'secret_out'", 'streaming'), 'and mended as the hint says');
$postgres->psql("alter role exporter nobypassrls; select cdc_resync_table('secret_out', 'shop.secret')");
ok($postgres->poll("select last_error from pg_stat_cdc_export_table where pipeline = 'secret_out'", qr/row-level security of table shop\.secret applies/), 'a copy looks again, and the table stops');

# ---- changes only, and no snapshot that is held

my $never = CdcBridge::Export->new(postgres => $postgres, name => 'never_out', dir => $export->{dir}, tables => '{shop.here}', options => '{"snapshot": "never"}');
$never->start->wait_for_state('streaming');
$postgres->psql("update shop.here set v = 'later' where id = 1");
$never->wait_for_all;
is(join(' ', map { $_->{op} } $never->records), 'u', 'snapshot "never": changes only');
like($postgres->psql_error("select cdc_start_pipeline('x', sink => 'files', tables => '{shop.here}', options => '{\"snapshot\": \"schema_only\"}')"),
	qr/invalid value for option "snapshot".*initial, never/s, 'other ways to begin are refused');
is($postgres->psql("select count(*) from pg_stat_activity where backend_type like 'cdc_bridge export%' and backend_xmin is not null"), '0',
	'a worker that streams holds back no xmin');
unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
kill('KILL', @sessions);

done_testing();
