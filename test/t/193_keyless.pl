# Tables without a key: copied at an exact mark while writers go on, followed as multisets of rows, and equal after kills; one scan
# for a batch however many rows it deletes; what cannot be without a key is refused.
# takes: 50 s

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;
use Time::HiRes qw(time);

my $rounds = $ENV{CDC_TEST_ROUNDS} // 6;
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed, $rounds rounds");

my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
my $columns = 'a int, b varchar(30), c decimal(10,2), d datetime(6), f double, e varbinary(10)';
$source->sql('create database shop', "create table shop.note ($columns)", "create table shop.quiet ($columns, key (a))",
	'create table shop.keyed (id int primary key, v int)', 'insert into shop.keyed values (1, 1)');
# one of 400 rows, several of which are equal but for a column or two
sub value
{
	my ($n) = @_;
	return sprintf('(%s, %s, %s, %s, %s, %s)', $n % 7 ? $n % 50 : 'null', $n % 3 ? "'text $n'" : "''", ($n % 11) . '.50',
		$n % 5 ? "'2024-01-01 00:00:00.000001'" : 'null', $n % 4 ? '1.' . $n % 10 : 'null', $n % 2 ? "x'0001'" : 'null');
}
for my $table (qw(note quiet))
{
	for my $part (0 .. 9) { $source->sql("insert into shop.$table values " . join(', ', map { value($part * 800 + $_ % 400) } 0 .. 799)); }
}
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"max_rows_per_second": 4000}')->setup;

# both sides as sorted lists of rows, read without the extension
sub rows_of
{
	my ($table) = @_;
	my @source = map { join("|", @$_) } $source->query_rows("select ifnull(a, 'n'), ifnull(b, 'n'), ifnull(c, 'n'), ifnull(date_format(d, '%Y-%m-%d %H:%i:%s.%f'), 'n'), ifnull(round(f * 10), 'n'), ifnull(hex(e), 'n') from shop.$table");
	my @target = split(/\n/, $postgres->psql("select coalesce(a::text, 'n'), coalesce(b, 'n'), coalesce(c::text, 'n'), coalesce(to_char(d, 'YYYY-MM-DD HH24:MI:SS.US'), 'n'), coalesce(round(f * 10)::text, 'n'), coalesce(upper(encode(e, 'hex')), 'n') from shop.$table"));
	return (join("\n", sort @source), join("\n", sort @target));
}

sub same
{
	my ($name, @tables) = @_;
	for my $table (@tables)
	{
		my ($source_rows, $target_rows) = rows_of($table);
		ok($source_rows eq $target_rows, "$name: $table") or diag(scalar(() = $source_rows =~ /\n/g) . ' rows there, ' . scalar(() = $target_rows =~ /\n/g) . " here\n" . $pipeline->describe);
	}
}

my $change = sub {
	my ($dbh) = @_;
	my $n = int(rand(400));
	my $dice = rand();
	my @statements = $dice < 0.35 ? "insert into shop.note values " . value($n)
	  : $dice < 0.55 ? "delete from shop.note where b = 'text $n' limit 1"
	  : $dice < 0.85 ? "update shop.note set c = c + 1, a = " . int(rand(50)) . " where b = 'text $n' limit 2"
	  : ("insert into shop.note values " . value($n) . ', ' . value($n), "delete from shop.note where b = 'text $n' limit 1", "update shop.note set f = null where b = 'text $n' limit 1");
	my $ok = eval {
		$dbh->begin_work;
		$dbh->do($_) for @statements;
		rand() < 0.1 ? $dbh->rollback : $dbh->commit;
		1;
	};
	return if $ok;
	my $error = $@;
	eval { $dbh->rollback };
	die $error unless $error =~ /(deadlock|lock wait|record has changed)/i;
};

# MySQL cannot tell where a snapshot stands: there the table is locked for a moment
if ($source->is_mysql)
{
	$pipeline->start;
	poll_until(sub { return $pipeline->table_status('note', 'last_error') =~ /has no key and cannot be locked/ }, 60) or diag($pipeline->describe);
	like($pipeline->table_status('note', 'last_error_hint'), qr/GRANT LOCK TABLES ON `shop`\.\* TO 'repl'/, 'a missing privilege: the hint is the statement');
	$pipeline->wait_for_table_state('keyed', 'streaming', 60);
	is($pipeline->table_status('note', 'state'), 'snapshot', 'the table waits');
	$source->sql('create table shop.late (id int primary key)', 'insert into shop.late values (1), (2)');
	$postgres->psql("select cdc_add_table('shop_in', 'shop.late')");
	$pipeline->wait_for_table_state('late', 'streaming', 60);
	pass('another one joins meanwhile');
	$source->sql('grant lock tables on shop.* to ' . $pipeline->table_status('note', "split_part(split_part(last_error_hint, 'TO ', 2), ';', 1)"));
	$pipeline->wait_for_tables(60)->wait_for_catchup;
	same('mended, it comes by itself', 'note', 'quiet');
	$pipeline->stop->drop->drop_target;
	$pipeline->{created} = 0;
}

for my $round (1 .. $rounds)
{
	$source->{seed} = $seed + $round;
	srand($seed + $round);
	$source->start_writers(4, $change);
	$pipeline->stop->drop->drop_target if $round > 1;
	$pipeline->start;
	$pipeline->wait_for_status('state', qr/snapshot|streaming/, 60);
	my $victim = (qw(none snapshot ingest postmaster source))[ $round % 5 ];
	if ($victim eq 'postmaster') { poll_until(sub { return $pipeline->status('changes') > 20 }) or die "the stream stands still\n" . $pipeline->describe; $postgres->kill9; $postgres->start; }
	elsif ($victim eq 'source') { poll_until(sub { return $pipeline->status('changes') > 20 }) or die "the stream stands still\n" . $pipeline->describe; $source->stop_writers; $source->kill9; $source->start; $source->start_writers(4, $change); }
	elsif ($victim ne 'none')
	{
		$postgres->poll("select count(*) > 0 from pg_stat_activity where backend_type = 'cdc_bridge $victim worker'", 't', 20);
		poll_until(sub { return 0 }, rand(1.5));    # the random moment
		my $pid = $postgres->psql("select coalesce(min(pid)::text, '') from pg_stat_activity where backend_type = 'cdc_bridge $victim worker'");
		$postgres->psql("select pg_terminate_backend($pid)") if $pid && $round % 2;
		$postgres->kill9_process($pid) if $pid && $round % 2 == 0;
	}
	$pipeline->wait_for_state('streaming')->wait_for_tables;
	my $changes = $pipeline->status('changes');
	poll_until(sub { return $pipeline->status('changes') > $changes + 100 }) or die "the stream stands still\n" . $pipeline->describe;
	$source->stop_writers;
	$pipeline->wait_for_catchup;
	same("round $round, killed $victim", 'note', 'quiet');
	$pipeline->is_verified("round $round: cdc_verify() finds the same", 'note', 'quiet');
	is($pipeline->table_status('note', 'conflicts'), '0', 'no row was missing');
	is($postgres->psql('select count(*) from cdc_bridge.snapshot_deleted'), '0', 'no debt is left');
}

# one scan for a batch
my $per_scan = q{select n_tup_del, seq_scan from pg_stat_user_tables where relid = 'shop.note'::regclass};
my ($deleted, $scans) = split(/\|/, $postgres->psql($per_scan));
$source->sql('set sql_safe_updates = 0', 'delete from shop.note where a < 25', 'update shop.note set b = concat(b, ".") where a < 40');
$pipeline->wait_for_catchup;
same('many rows at once', 'note');
ok($postgres->poll("select n_tup_del > $deleted + 3000 from pg_stat_user_tables where relid = 'shop.note'::regclass", 't'), 'they were deleted');
my ($deleted_then, $scans_then) = split(/\|/, $postgres->psql($per_scan));
cmp_ok($scans_then - $scans, '<', ($deleted_then - $deleted) / 20, 'by few scans');

# equal rows: exactly one goes
$source->sql('create table shop.twin (a int, b varchar(30), c decimal(10,2), d datetime(6), f double, e varbinary(10))', 'insert into shop.twin values ' . join(', ', ("(1, 'same', null, null, null, null)") x 5));
$postgres->psql("select cdc_add_table('shop_in', 'shop.twin')");
$pipeline->wait_for_table_state('twin', 'streaming', 60);
same('a table without a key that joins', 'twin');
$source->sql('delete from shop.twin limit 2', 'update shop.twin set a = 2 limit 1');
$pipeline->wait_for_catchup;
same('exactly as many rows as the source', 'twin');
is($postgres->psql('select count(*), count(*) filter (where a = 2) from shop.twin'), '3|1', 'S3: of five equal rows two went, one changed');
$postgres->psql('delete from shop.twin where a = 2');
$source->sql('delete from shop.twin where a = 2', 'insert into shop.twin (a) values (7)');
$pipeline->wait_for_catchup;
is($pipeline->table_status('twin', 'conflicts'), '1', 'a row that somebody took is counted');
same('and the rest goes on', 'twin');

# writers whose transactions overlap without a pause: on MySQL a lock for reading never comes, as they pass it
$source->sql('create table shop.busy (a int, b varchar(30), c decimal(10,2), d datetime(6), f double, e varbinary(10))');
$source->start_writers(12, sub {
	my ($dbh) = @_;
	$dbh->begin_work;
	$dbh->do("insert into shop.busy (a, b) values ($$, 'busy')");
	poll_until(sub { return 0 }, 0.2);    # the transaction stays open
	$dbh->commit;
});
ok(poll_until(sub { return $source->query_value('select count(*) from shop.busy') > 0 }, 30), 'writers overlap');
$postgres->psql("select cdc_add_table('shop_in', 'shop.busy')");
$pipeline->wait_for_table_state('busy', 'streaming', 60);
$source->stop_writers;
$pipeline->wait_for_catchup;
same('a table that is never free of writers', 'busy');

# what would double its rows
$pipeline->stop;
like($postgres->psql_error("select cdc_set_position('shop_in', at => 'bl.000001:4')"), qr/of pipeline "shop_in" has no key/, 'no position by hand');
$pipeline->start->wait_for_state('streaming');

# a new copy
$postgres->psql("update shop.twin set b = 'damaged'; select cdc_resync_table('shop_in', 'shop.twin')");
$pipeline->wait_for_table_state('twin', 'stopped', 60);
like($pipeline->table_status('twin', 'last_error'), qr/cannot be copied anew beside its rows/, 'not beside its rows');
$postgres->psql("truncate shop.twin; select cdc_resync_table('shop_in', 'shop.twin')");
$pipeline->wait_for_table_state('twin', 'streaming', 60);
same('copied anew when it is empty', 'twin');

# a constraint of the target stops it at the transaction
$postgres->psql('alter table shop.twin add check (a < 100)');
$source->sql('insert into shop.twin (a) values (8)', 'start transaction', 'insert into shop.twin (a) values (9)', 'insert into shop.twin (a) values (100)', 'commit', 'insert into shop.keyed values (2, 2)');
$pipeline->wait_for_table_state('twin', 'stopped', 60)->wait_for_catchup;
is($postgres->psql('select max(a) from shop.twin'), '8', 'everything before it, nothing of it');
is($postgres->psql('select count(*) from shop.keyed'), '2', 'others go on');

# refused
# the target first: a table that is made at the source joins at once
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create table shop.traced (a int)', 'create function shop.note() returns trigger language plpgsql as $$ begin return new; end $$',
	'create trigger note before insert on shop.traced for each row execute function shop.note()', 'alter table shop.traced enable always trigger note'));
$source->sql('create table shop.flat (a int) engine = MyISAM', 'create table shop.traced (a int)');
$pipeline->wait_for_table_state($_, 'stopped', 60) for qw(flat traced);
is($pipeline->table_status('flat', 'last_error_sqlstate'), 'YC006', 'an engine without transactions');
like($pipeline->table_status('flat', 'last_error_detail'), qr/engine MyISAM has no transactions/, 'detail');
like($pipeline->table_status('traced', 'last_error'), qr/cannot be the target of a source table without a key/, 'row triggers');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
