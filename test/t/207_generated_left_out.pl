# Generated columns that MariaDB 11.8 leaves out of the images of updated and deleted rows, with any binlog_row_image: the source is asked
# for them, in every tier, by every kind of key, while rows change further, while the table is copied, and not before the source shows
# the change. What it cannot be asked for stops its table.
# cells: mariadb118-15

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::HeldCommit;
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::HeldCommit->source;
plan skip_all => 'this server logs them' unless $source->is_mariadb && $source->version >= 110800;
my $postgres = CdcBridge::Postgres->new;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 20}');

my $generated = q{st bigint generated always as (a * 2 + 1) stored, vt varchar(60) generated always as (concat(t, '-', a)) virtual, le int generated always as (length(t)) virtual, }
  . q{d date generated always as (date_add('2026-01-01', interval a day)) stored, j varchar(50) character set latin1 generated always as (concat(t, 'é')) stored};
my $columns = "a int, t varchar(50), n int not null default 0, $generated";
my %key = (lean => 'id int primary key', executor => 'id int primary key', view => 'id int primary key', pair => q{k varchar(9), id decimal(9,2), primary key (k, id)}, blind => 'id int unique not null, k char(9) primary key');
$source->sql('create database shop', 'use shop', (map { "create table shop.$_ ($key{$_}, $columns)" } sort keys %key),
	'create table shop.keyless (a int, g int generated always as (a + 1) stored)', 'insert into shop.keyless (a) values (1), (2)',
	'create table shop.computed (id int primary key, a int, g int generated always as (a + 1) stored)', 'insert into shop.computed (id, a) values (1, 1), (2, 2)',
	'create table shop.xa (id int primary key, a int, g int generated always as (a + 1) stored)', 'insert into shop.xa (id, a) values (1, 1), (2, 2)',
	'create table shop.altered (id int primary key, a int, g int generated always as (a + 1) virtual)', 'insert into shop.altered (id, a) values (1, 1), (2, 2)',
	'create table shop.dropped (id int primary key, a int, g int generated always as (a + 1) virtual)', 'insert into shop.dropped (id, a) values (1, 1), (2, 2)');
my @tables = sort keys %key;
for my $table (@tables)
{
	my $k = $key{$table} =~ /\bk / ? ', k' : '';
	$source->sql("insert into shop.$table (id, a, t$k) select seq, seq, concat('row ', seq)" . ($k && ", concat('Key', seq)") . ' from seq_1_to_60');
}
my $target = 'id int primary key, a int, t text, n int, st bigint, vt text, le int, d date, j text';
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create schema shop', "create table shop.executor ($target)",
	'create function shop.nothing() returns trigger language plpgsql as $$ begin return new; end $$',
	'create trigger nothing before insert or update on shop.executor for each row execute function shop.nothing()', 'alter table shop.executor enable always trigger nothing',
	"create table shop.behind ($target)", 'create view shop.view as select * from shop.behind',
	'create table shop.computed (id int primary key, a int, g int generated always as (a + 1) stored)'));

# ---- while the tables are copied, under writers
my $session = $source->connect;
$session->do('use shop');
sub write_once
{
	my ($dbh) = @_;
	my $table = $tables[ rand @tables ];
	my ($id, $v) = (1 + int(rand(60)), int(rand(100000)));
	my @ways = ("update shop.$table set a = $v where id = $id", "update shop.$table set t = concat('text ', $v), n = n + 1 where id between $id and $id + 2", "update shop.$table set a = null where id = $id",
		"update ignore shop.$table set id = id + 1 where id = $id", "delete from shop.$table where id = $id", "insert ignore into shop.$table (id, a, t" . ($key{$table} =~ /\bk / ? ", k) values ($id, $v, 'new', 'key$id')" : ") values ($id, $v, 'new')"),
		"update shop.$table set n = n + 1");
	$dbh->do($ways[ rand @ways ]);
	return;
}
my $change = sub { my ($dbh) = @_; eval { write_once($dbh); 1 } or $@ =~ /(deadlock|duplicate|lock wait|record has changed)/i or die $@; select(undef, undef, undef, 0.005); };
$source->{seed} = time();
note("seed $source->{seed}");
$source->start_writers(2, $change);
$pipeline->{options} = '{"snapshot_chunk_rows": 20, "max_rows_per_second": 200}';
$pipeline->setup->start->wait_for_tables;
my $seen = $pipeline->status('changes');
poll_until(sub { return $pipeline->status('changes') > $seen + 100; }) or die "the stream stands still\n" . $pipeline->describe;
$postgres->kill9_process($pipeline->status('ingest_pid'));
$pipeline->wait_for_state('streaming');
$source->stop_writers;
$pipeline->wait_for_catchup;
is($pipeline->status('tables_stopped'), '0', 'no table is stopped') or diag($pipeline->describe);
$pipeline->is_same('copied and streamed under writers', @tables);
is(join(' ', map { $pipeline->table_status($_, 'tier') } qw(lean executor view)), 'lean executor sql', 'in every tier');

# ---- not before the source shows it: the change is in the log, and a SELECT finds the row as it was
my $asked = sub { return $source->query_value(q{select max(query_id) from information_schema.processlist where user = 'repl' and command <> 'Binlog Dump'}) // 0; };
my $last = $asked->();
my $held = CdcBridge::HeldCommit->new($source, 'update shop.lean set a = 4242 where id = 7', q{insert into shop.lean (id, a, t) values (500, 5, 'x') on duplicate key update a = 5}, 'update shop.lean set a = 6 where id = 500');
isnt($source->query_value('select ifnull(max(a), 0) from shop.lean where id = 7'), '4242', 'the source does not show it');
ok(poll_until(sub { return $asked->() > $last; }, 20), 'the worker asks');
$held->release;
$pipeline->wait_for_catchup;
$pipeline->is_same('the row as it is after the change', 'lean');

# ---- all that happened while we were away: what is read is newer than the change
$postgres->stop;
$source->sql(map { ("update shop.$_ set a = 1 where id = 10", "update shop.$_ set a = 2, t = 'two' where id = 10", "update shop.$_ set id = 1000 where id = 10", "update shop.$_ set a = 3 where id = 1000",
	"update shop.$_ set a = 77 where id = 11", "delete from shop.$_ where id = 11", "update shop.$_ set a = 78 where id = 12", "update shop.$_ set a = null, t = null where id = 12") } @tables);
$source->sql('update shop.altered set a = 5 where id = 1', 'alter table shop.altered drop g', 'update shop.dropped set a = 5 where id = 1', 'drop table shop.dropped');
$postgres->start;
$pipeline->wait_for_state('streaming')->wait_for_table_state('altered', 'stopped');
$pipeline->wait_for_catchup;
$pipeline->is_same('what changed again', @tables);
my $why = qr/Generated column "g" is not in the row image, and the source cannot be asked for it: .+/;
is($pipeline->table_status('altered', 'last_error_sqlstate'), 'YC005', 'altered at the source since: the table stops');
like($pipeline->table_status('altered', 'last_error_detail'), $why, 'and says why');
like($postgres->log_text, qr/shop\.dropped.*\n(?:.*\n){0,3}?.*DETAIL:  $why/, 'dropped at the source since: the table stops and says why');
is($pipeline->table_status('dropped', 'state'), '', 'until the stream comes to the drop, and it leaves');

# ---- a table that is locked at the source: the stream waits, and goes on
$postgres->stop;
# the writers may have taken the row away, or left it so
$source->sql('insert ignore into shop.lean (id) values (20)', 'update shop.lean set a = ifnull(a, 0) + 31 where id = 20', 'update shop.pair set a = 32 where id = 20');
$session->do('lock tables lean write');
$postgres->start;
ok(poll_until(sub { return $postgres->log_text =~ /the stream waits for source table "shop\.lean", which is locked there/; }, 30), 'a locked table is told');
$last = $asked->();
ok(poll_until(sub { return $asked->() > $last; }, 20), 'it is asked for again');
is($pipeline->status('failures'), '0', 'without an error');
$session->do('unlock tables');
$pipeline->wait_for_catchup;
$pipeline->is_same('after the lock', @tables);

# ---- a connection that is killed
$source->sql(map { "kill $_->[0]" } $source->query_rows(q{select id from information_schema.processlist where user = 'repl' and command = 'Sleep'}));
$source->sql('update shop.lean set a = a + 1');
$pipeline->wait_for_catchup;
$pipeline->is_same('after the connection was killed', 'lean');

# ---- what it cannot be asked for; what the target computes need not be asked for
$source->sql('update shop.computed set a = 9 where id = 1', 'delete from shop.computed where id = 2', 'update shop.keyless set a = 3 where a = 1');
$session->do($_) for "xa start 'x'", 'update xa set a = 5 where id = 1', "xa end 'x'", "xa prepare 'x'", "xa commit 'x'";
$pipeline->wait_for_table_state($_, 'stopped') for qw(keyless xa);
$pipeline->wait_for_catchup;
$pipeline->is_same('the target computes it too', 'computed');
like($pipeline->table_status('xa', "last_error_detail || ' ' || last_error_hint"), qr/XA COMMIT.*GENERATED ALWAYS AS/, 'XA');
like($pipeline->table_status('keyless', "last_error_detail || ' ' || last_error_hint"), qr/"g".*GENERATED ALWAYS AS/, 'no key');
is($pipeline->status('tables_stopped'), '3', 'the others go on');
$pipeline->is_verified('cdc_verify() finds no difference', @tables, 'computed');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
