# Transactions as the servers write them, beyond BEGIN, rows and Xid: savepoints that are rolled back to and stay in the log (B2), groups
# of engines without transactions (B3), temporary tables (B4), rows of wanted tables among those of others (B21), rotations (B22), row
# events of version 1 (B31), CREATE TABLE ... SELECT.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

# MySQL with GTIDs does not allow what is to be seen here
my $source = CdcBridge::Source->new(args => ($ENV{CDC_SOURCE} // '') eq 'mysql' ? [ '--gtid-mode=OFF', '--enforce-gtid-consistency=OFF', '--performance-schema=ON' ] : []);
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.t (id int auto_increment primary key, v int)',
	'create table shop.i (id int primary key, v int)', 'create table shop.m (id int primary key, v int) engine = MyISAM', 'insert into shop.i values (0, 0)', 'insert into shop.m values (0, 0)',
	'create table shop.u (id int primary key, x int unique, y int unique)', 'insert into shop.u values ' . join(', ', map { "($_, $_, $_)" } 1 .. 20));
$source->dbh->do(sprintf("grant backup_admin on *.* to '%s'\@'%%'", $source->user)) if $source->is_mysql;
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, tables => '{shop.i,shop.m,shop.u}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;

# Run statements in one session, wait, compare.
sub all_in_one
{
	my ($name, @statements) = @_;
	my ($file, $offset) = $source->binlog_position;
	my $dbh = $source->connect;
	$dbh->do($_) for @statements;
	$dbh->disconnect;
	$pipeline->wait_for_catchup;
	$pipeline->is_same($name, qw(i m u));
	return join("\n", map { "$_->[2] $_->[5]" } @{ $source->dbh->selectall_arrayref("show binlog events in '$file' from $offset") });
}
sub log_has { my ($log, $what, $name) = @_; return $source->is_mariadb ? like($log, $what, "$name (as logged)") : unlike($log, qr/ROLLBACK TO/, "$name (not logged)"); }

# ---- savepoints
my $log = all_in_one('B2: rows that are undone by ROLLBACK TO', 'begin', 'insert into shop.i values (1, 1)', 'savepoint a', 'insert into shop.i values (2, 2)', 'insert into shop.m values (2, 2)',
	'rollback to a', 'insert into shop.i values (3, 3)', 'commit');
log_has($log, qr/ROLLBACK TO/, 'the undone rows stay in the log');
is($postgres->psql('select count(*) from shop.i where id in (1, 2, 3)'), '2', 'B2: and are not here');
all_in_one('B2: nested, repeated and quoted savepoints', 'begin', 'insert into shop.i values (10, 10)', 'savepoint `x``y`', 'update shop.i set v = 11 where id = 10', 'savepoint b', 'insert into shop.m values (10, 10)',
	'insert into shop.i values (11, 11)', 'rollback to b', 'insert into shop.i values (12, 12)', 'savepoint b', 'insert into shop.i values (13, 13)', 'rollback to b', 'delete from shop.i where id = 12',
	'rollback work to savepoint `X``Y`', 'insert into shop.i values (14, 14)', 'savepoint c', 'insert into shop.i values (15, 15)', 'release savepoint c', 'commit');
is($postgres->psql('select string_agg(id::text, $$,$$ order by id) from shop.i where id between 10 and 19'), '10,14,15', 'B2: what counts is here');
all_in_one('B2: a savepoint before everything', 'begin', 'savepoint a', 'insert into shop.i values (20, 20)', 'insert into shop.m values (20, 20)', 'rollback to a', 'insert into shop.i values (21, 21)', 'commit');
all_in_one('B2: all is undone', 'begin', 'insert into shop.i values (30, 30)', 'savepoint a', 'insert into shop.i values (31, 31)', 'insert into shop.m values (31, 31)', 'rollback to a', 'rollback');
my $before = $pipeline->status('commits');
all_in_one('B2: many of them', 'begin', map({ ("savepoint s$_", "insert into shop.i values (100 + $_, $_)", $_ % 2 ? "rollback to s$_" : (), $_ == 7 ? 'insert into shop.m values (40, 40)' : ()) } 1 .. 60), 'commit');
is($postgres->psql('select count(*) from shop.i where id > 100'), '30', 'B2: half of them count');
all_in_one('B2: inside an XA transaction', q{xa start 'x'}, 'insert into shop.i values (50, 50)', 'savepoint a', 'insert into shop.i values (51, 51)', 'insert into shop.m values (51, 51)', 'rollback to a',
	'insert into shop.i values (52, 52)', q{xa end 'x'}, q{xa prepare 'x'}, q{xa commit 'x'});
is($postgres->psql('select count(*) from shop.i where id in (50, 51, 52)'), '2', 'B2: and are not here');
is($postgres->psql(q{select string_agg(source_table || ' ' || state, ', ' order by source_table) from pg_stat_cdc_table}), 'i streaming, m streaming, u streaming', 'no table stopped');

# ---- several uniques at once
my $u = sub { return $postgres->psql(q{select string_agg(id || ':' || coalesce(x::text, '-') || ':' || coalesce(y::text, '-'), ' ' order by id) from shop.u where id } . $_[0]); };
$postgres->poll(q{select count(*) from pg_stat_cdc_index where source_table = 'u' and state = 'built'}, '2') or die "the indexes are not built\n" . $pipeline->describe;
all_in_one('B35: REPLACE that meets three rows', 'replace into shop.u values (1, 2, 3)');
is($u->('< 4'), '1:2:3', 'B35: one is left of them');
all_in_one('B35: ON DUPLICATE KEY UPDATE, by either key', 'insert into shop.u values (30, 4, 30) on duplicate key update id = 30, y = 31', 'insert into shop.u values (40, 40, 5), (41, 41, 41) on duplicate key update x = 42');
is($u->('in (4, 5, 30, 40, 41)'), '5:42:5 30:4:31 41:41:41', 'B35: these are changed');
all_in_one('B35: values change places in one statement and in one transaction', 'update shop.u set x = -x where id in (6, 7)', 'begin', 'update shop.u set x = 7 where id = 6', 'update shop.u set x = 6 where id = 7',
	'update shop.u set y = null where id = 8', 'update shop.u set y = 8 where id = 9', 'update shop.u set y = 9 where id = 8', 'commit', 'update shop.u set x = x + 1 where id between 10 and 20 order by x desc');
is($u->('between 6 and 9'), '6:7:6 7:6:7 8:8:9 9:9:8', 'B35: they are in their new places');
all_in_one('B35: several tables in one statement', 'update shop.u, shop.i set shop.u.y = shop.u.y + 1000, shop.i.v = shop.i.v + 1 where shop.u.id = shop.i.id', 'delete shop.u, shop.i from shop.u, shop.i where shop.u.id = shop.i.id and shop.u.id in (14, 21)');

# ---- engines without transactions
$log = all_in_one('B3: a row of an engine without transactions', 'insert into shop.m values (60, 60)', 'update shop.m set v = 61 where id = 60');
like($log, qr/Query COMMIT/, 'B3: its group ends with COMMIT as text');
all_in_one('B3: it stays when the transaction is rolled back', 'begin', 'insert into shop.i values (62, 62)', 'insert into shop.m values (62, 62)', 'rollback');
is($postgres->psql('select (select count(*) from shop.i where id = 62), (select count(*) from shop.m where id = 62)'), '0|1', 'B3: here too');
all_in_one('B3: both kinds in one statement', 'update shop.i, shop.m set shop.i.v = 63, shop.m.v = 63 where shop.i.id = 1 and shop.m.id = 2');
all_in_one('B3: half of a statement that failed stays', 'insert ignore into shop.m values (64, 64), (64, 65), (66, 66)');

# ---- temporary tables
$log = all_in_one('B4: temporary tables in transactions', 'create temporary table shop.t (id int primary key, v int)', 'begin', 'insert into shop.t values (70, 70)', 'insert into shop.i select * from shop.t', 'rollback',
	'begin', 'insert into shop.i select id + 1, v from shop.t', 'drop temporary table shop.t', 'commit', 'create temporary table shop.i (id int)', 'insert into shop.i values (72)', 'drop temporary table shop.i');
is($pipeline->table_status('i', 'state'), 'streaming', 'B4: one that hides a table of ours is none of our business');

# ... also where they are logged as statements, by the name alone
my $session = $source->connect;
$session->do($_) for 'use shop', q{set session binlog_format = 'STATEMENT'}, 'create temporary table i (id int)', 'alter table i add z int, drop id', 'create index z on i (z)', 'truncate table i', 'truncate i', 'drop index z on i',
	'alter table i rename to i_gone';
# what is about a table of ours in such a session is followed
$session->do($_) for 'create temporary table other (id int)', 'alter table u add more int default 4', 'truncate table m';
$session->disconnect;
$source->sql('insert into shop.i values (75, 75)', 'insert into shop.m values (75, 75)', 'insert into shop.u (id, x, y) values (75, 75, 75)');
$pipeline->wait_for_catchup;
$pipeline->is_same('B4: statements on a temporary table do nothing to the table that it hides', qw(i m u));
is($postgres->psql(q{select string_agg(source_table || ' ' || array_to_string(kinds, ','), ' ' order by change_no) from cdc_schema_history}), 'u add_column m truncate_table', 'B4: nor are they told');

# ---- among others, over rotations
$source->dbh->do('flush binary logs');
for my $round (1 .. 3)
{
	$pipeline->stop if $round == 2;
	$source->sql('begin', "insert into elsewhere.t (v) values ($round), ($round)", "insert into shop.i values (80 + $round, $round)", "update elsewhere.t set v = v + 1", "insert into shop.i values (90 + $round, $round)", 'commit');
	$source->dbh->do('flush binary logs') for 1 .. $round;
	$pipeline->start->wait_for_state('streaming') if $round == 2;
	$pipeline->wait_for_catchup;
	$pipeline->is_same("B21, B22: rows among those of other tables, $round rotations", qw(i m u));
}
my ($file, $offset) = $source->binlog_position;
$source->sql('insert into shop.i values (99, 99)');
$pipeline->wait_for_catchup;
like(join(' ', map { $_->[2] } @{ $source->dbh->selectall_arrayref("show binlog events in '$file' from $offset") }), $source->is_mariadb ? qr/Write_rows_v1/ : qr/Write_rows\b/, 'B31: the version of the row events');
$pipeline->is_same('B31: both versions are read', qw(i m u));

# ---- CREATE TABLE ... SELECT
$source->sql('create table shop.copy as select * from shop.i', 'create table elsewhere.copy (primary key (id)) select * from shop.i', 'insert into shop.i values (200, 200)', 'drop table elsewhere.copy');
$pipeline->wait_for_catchup;
is($postgres->psql(q{select string_agg(source_table || ' ' || state, ', ' order by source_table) from pg_stat_cdc_table}), 'i streaming, m streaming, u streaming', 'CREATE TABLE ... SELECT into tables that are not mirrored');
$pipeline->is_same('both sides are equal', qw(i m u));
# the definition is read before the stream comes to the statement
$pipeline->stop;
$source->sql('create table shop.made (primary key (id)) select * from shop.i', 'update shop.made set v = v + 1');
$postgres->psql(q{select cdc_add_table('shop_in', 'shop.made')});
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
is($pipeline->table_status('made', 'state'), 'streaming', 'a table that joins before its CREATE TABLE ... SELECT') or diag($pipeline->describe);
$pipeline->is_same('has its rows', qw(i m u made));
# made anew, it is another one
$source->sql('drop table shop.made', 'create table shop.made (primary key (id)) select id, v, 1 as w from shop.i');
$pipeline->wait_for_catchup;
$pipeline->wait_for_table_state('made', 'streaming')->wait_for_catchup;
$pipeline->is_same('made anew by CREATE TABLE ... SELECT and copied anew', qw(i m u made));
is($postgres->psql('select count(*) from shop.made where w = 1'), $postgres->psql('select count(*) from shop.i'), 'as it is now');

done_testing();
