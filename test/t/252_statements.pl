# Statements in the log instead of rows: which sessions may choose (binlog_format, LOAD DATA). The tables that a statement names stop, with
# a way out; all tables where it does not tell; the children of what it names, for foreign keys are in no log then; what triggers and
# functions behind it name, for they are not either. Statements about other tables are ignored.
# cells: mariadb-15 mysql-18
# takes: 30 s

use strict;
use warnings;

use CdcBridge::Env qw(new_folder);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use DBI;
use Test::More;

my $source = CdcBridge::Source->new(args => ['--local-infile=ON']);
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create database elsewhere', 'create table elsewhere.parent (id int primary key)', 'create table elsewhere.t (id int primary key, v int)',
	'insert into elsewhere.parent values (1), (2), (3)', (map { "create table shop.$_ (id int primary key, v int)" } qw(a b)),
	'create table shop.child (id int primary key, pid int, foreign key (pid) references elsewhere.parent (id) on delete cascade)',
	'insert into shop.a values (1, 1), (2, 2)', 'insert into shop.b values (1, 1), (2, 2)', 'insert into shop.child values (1, 1), (2, 2), (3, 3)',
	'create table shop.grandchild (id int primary key, cid int, foreign key (cid) references shop.child (id) on delete cascade)', 'insert into shop.grandchild values (1, 1), (2, 2), (3, 3)',
	'create function elsewhere.f() returns int deterministic modifies sql data begin insert into shop.a values (100, 100); return 1; end',
	# what is behind is told to who has TRIGGER
	q{grant trigger on *.* to 'repl'@'%'});
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres)->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my $all = 'a,b,child,grandchild';
sub stopped { return $postgres->psql(q{select coalesce(string_agg(source_table, ',' order by source_table), '') from pg_stat_cdc_table where state = 'stopped'}); }

my %detail;
sub stop_detail { return $detail{ $_[0] }; }

# Run statements in a session that logs statements; say which tables have to stop; copy them anew.
sub run
{
	my ($name, $want, @statements) = @_;
	my $dbh = DBI->connect("dbi:mysql:;mysql_socket=$source->{dir}/s.sock;mysql_local_infile=1", 'root', '', { RaiseError => 1, PrintError => 0 });
	$dbh->do($_) for q{set session binlog_format = 'STATEMENT'}, @statements;
	$dbh->disconnect;
	if ($want eq $all)
	{
		$pipeline->wait_for_state('failed', 60);
		is($pipeline->status('last_error'), 'all tables of pipeline "shop_in" are stopped', "$name: the pipeline has nothing left to do");
	}
	elsif ($want ne '')
	{
		$pipeline->wait_for_table_state($_, 'stopped') for split(/,/, $want);
	}
	$source->sql('insert into elsewhere.t values (floor(rand() * 1000000000), 1)');
	$pipeline->wait_for_catchup if $want ne $all;
	is(stopped(), $want, "$name: " . ($want eq '' ? 'no table stops' : "$want stopped"));
	%detail = ();
	for my $table (split(/,/, $want))
	{
		$detail{$table} = $pipeline->table_status($table, 'last_error_detail');
		is($pipeline->table_status($table, 'last_error_sqlstate'), 'YC005', "$name: $table says why") or diag($pipeline->table_status($table, 'last_error'));
		like($pipeline->table_status($table, 'last_error_hint'), qr/binlog_format = 'ROW'.*cdc_resync_table\(\)/, "$name: and the way out");
		$postgres->psql("select cdc_resync_table('shop_in', 'shop.$table')");
	}
	$pipeline->start if $want eq $all;
	$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$pipeline->is_same("$name: equal again");
	return;
}

run('INSERT', 'a', 'insert into shop.a values (10, 10)');
run('UPDATE with an alias', 'a', 'update shop.a as x set x.v = 11 where id = 10');
run('statements in a transaction', 'a,b', 'begin', 'replace into shop.a values (10, 12)', 'delete from shop.b where id = 1', 'commit');
run('UPDATE of several tables', 'a,b', 'update shop.a, shop.b set shop.a.v = 13, shop.b.v = 13 where shop.a.id = shop.b.id');
run('default schema', 'b', 'use shop', 'insert into b select id + 50, v from a');
run('tables of others', '', 'insert into elsewhere.t values (1, 1)', 'insert into elsewhere.t select id + 10, v from shop.a', 'update elsewhere.t set v = 2', 'delete from elsewhere.t where id = 1', 'create table elsewhere.made as select * from shop.a');
run('a parent of others', 'child,grandchild', 'delete from elsewhere.parent where id = 2');
run('a function', $all, 'do elsewhere.f()') if $source->is_mariadb;

# ---- LOAD DATA
my $file = new_folder('load') . '/rows';
open(my $out, '>', $file) or die "$file: $!";
print $out map { "$_,$_\n" } 1000 .. 2999;
close($out);
chmod(0644, $file);
my $load = "local infile '$file' %s into table %s fields terminated by ',' (id, v)";
run('LOAD DATA', 'a', sprintf("load data $load", '', 'shop.a'));
run('LOAD DATA ... REPLACE, with SET', 'b', 'use shop', sprintf("load data $load set v = v + 1", 'replace', 'b'));
run('LOAD DATA into another table', '', sprintf("load data $load", 'ignore', 'elsewhere.t'));
$source->sql('truncate elsewhere.t');
run('LOAD DATA in row format', '', q{set session binlog_format = 'ROW'}, 'delete from shop.b where id > 1500', sprintf("load data $load", 'ignore', 'shop.b'), sprintf("load data $load set v = v + 2", 'replace', 'shop.b'));
is($postgres->psql('select count(*), sum(v) from shop.b where id between 1000 and 2999'), '2000|' . (2000 * 3999 / 2 + 4000), 'its rows are there');

# ---- triggers and functions behind a statement
$source->sql((map { "create table elsewhere.$_ (id int auto_increment primary key)" } qw(writes chain calls deletes quiet)),
	'create procedure elsewhere.p(x int) insert into shop.a values (x, 1)',
	'create trigger elsewhere.t1 after insert on elsewhere.writes for each row insert into shop.b values (10000 + new.id, 1)',
	'create trigger elsewhere.t2 after insert on elsewhere.chain for each row insert into elsewhere.writes values ()',
	'create trigger elsewhere.t3 after insert on elsewhere.calls for each row call elsewhere.p(20000 + new.id)',
	'create trigger elsewhere.t4 before insert on elsewhere.deletes for each row delete from elsewhere.parent where id = 3',
	'create trigger elsewhere.t5 before insert on elsewhere.quiet for each row set new.id = new.id');
run('a trigger', 'b', 'insert into elsewhere.writes values ()');
like(stop_detail('b'), qr/a trigger or stored routine of the source that it may have run names this table/, 'a trigger: which the detail says');
run('a trigger behind a trigger', 'b', 'insert into elsewhere.chain values ()');
run('a procedure behind a trigger', 'a', 'insert into elsewhere.calls values ()');
run('a trigger that deletes from a parent', 'child,grandchild', 'insert into elsewhere.deletes values ()');
$source->sql('delete from shop.a where id = 100');
run('a function in an INSERT', 'a', 'insert into elsewhere.t values (elsewhere.f(), 1)');
run('a trigger that writes nowhere', '', 'insert into elsewhere.quiet values ()');
$source->sql('create trigger elsewhere.t6 after insert on elsewhere.quiet for each row insert into shop.b values (30000 + new.id, 1)');
run('a trigger that is new', 'b', 'insert into elsewhere.quiet values ()');
$source->sql('drop trigger elsewhere.t6');
run('a trigger that is gone', '', 'insert into elsewhere.quiet values ()');

# ---- what cdc_check says of it
my $check = q{select status, hint from cdc_check('shop') where "check" = 'stored_code'};
is($postgres->psql($check), 'ok|', 'cdc_check: triggers do no harm to a log of rows');
$source->sql(q{set global binlog_format = 'MIXED'});
is($postgres->psql($check), 'warning|SET GLOBAL binlog_format = ROW;', 'cdc_check: but to one of statements');

done_testing();
