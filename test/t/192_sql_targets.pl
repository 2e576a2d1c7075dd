# Targets that only SQL can write to: foreign tables (here of another database, by postgres_fdw), partitioned tables with foreign
# leaves, views. They are kept equal in snapshot and stream, also when a worker is killed, and repeating a batch changes nothing.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "max_prepared_transactions = 0\n");
my $seed = $ENV{CDC_SEED} // int(time());
diag("seed $seed");
plan skip_all => 'postgres_fdw is not installed' if $postgres->psql("select count(*) from pg_available_extensions where name = 'postgres_fdw'") eq '0';

$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int, name varchar(20))",
	"insert into shop.$_ values " . join(', ', map { "($_, $_, 'n$_')" } 1 .. 200)) } qw(far spread seen));
$postgres->psql('create database far');
my $port = $postgres->port;
my $host = $postgres->host;
my $far = sub { my ($sql) = @_; my ($status, $out, $err) = $postgres->try_psql("\\c far\n$sql"); die $err if $status; $out =~ s/^You are now connected.*\n?//; return $out; };
$far->("create table far (id int primary key, v int, name text); create table spread_2 (id int primary key, v int, name text)");
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create extension postgres_fdw', 'create schema shop',
	"create server far foreign data wrapper postgres_fdw options (host '$host', port '$port', dbname 'far')", q{create user mapping for current_user server far options (user 'postgres')},
	q{create foreign table shop.far (id int, v int, name text) server far options (schema_name 'public', table_name 'far')},
	'create table shop.spread (id int, v int, name text) partition by range (id)',
	'create table shop.spread_1 partition of shop.spread (primary key (id)) for values from (0) to (100)',
	q{create foreign table shop.spread_2 partition of shop.spread for values from (100) to (1000000) server far options (schema_name 'public', table_name 'spread_2')},
	'create table shop.behind (id int primary key, name text, v int, hidden int default 4)',
	'create view shop.seen as select id, v, name from shop.behind'));

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 30}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->table_status($_, 'state'), 'streaming', "$_ streams") or diag($pipeline->table_status($_, "concat(last_error, ' ', last_error_detail)")) for qw(far spread seen);
$pipeline->is_same('copied', qw(far spread seen));
is($far->('select count(*) from spread_2'), '101', 'a foreign leaf has its rows');

for my $table (qw(far spread seen))
{
	$source->sql("update shop.$table set v = v + 1 where id % 2 = 0", 'start transaction', "delete from shop.$table where id % 5 = 0",
		"insert into shop.$table values (1000, 1, null)", "update shop.$table set id = id + 2000 where id = 7", "update shop.$table set name = 'x' where id = 1000", 'commit');
}
$pipeline->wait_for_catchup;
$pipeline->is_same('streamed', qw(far spread seen));
is($pipeline->table_status($_, "tier || ' ' || collapsed"), 'sql true', "$_: the view says how") for qw(far spread seen);
is($postgres->psql('select distinct hidden from shop.behind'), '4', 'what is behind the view keeps its own');

# random changes with a worker killed between
for my $round (1 .. 3)
{
	$source->{seed} = $seed++;
	$source->start_writers(2, sub {
		my ($dbh) = @_;
		my $table = (qw(far spread seen))[ rand 3 ];
		my $id = 1 + int(rand(150));
		$dbh->do($_) for rand() < 0.4 ? "replace into shop.$table values ($id, " . int(rand(1000)) . ", 'r')"
		  : rand() < 0.5 ? "delete from shop.$table where id = $id" : "update shop.$table set v = v + 1 where id between $id and $id + 5";
	});
	my $changes = $pipeline->status('changes');
	poll_until(sub { return $pipeline->status('changes') > $changes + 30 }) or die "the stream stands still\n" . $pipeline->describe;
	$postgres->kill9_process($pipeline->status('ingest_pid'));
	$source->stop_writers;
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_mirrored("round $round", qw(far spread seen));
}

# a view whose triggers would not fire, and that would swallow every row
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create table shop.kept (id int)', 'create view shop.swallow as select id from shop.kept union all select id from shop.kept',
	'create function shop.keep() returns trigger language plpgsql as $$ begin insert into shop.kept values (new.id); return new; end $$',
	'create trigger keep instead of insert on shop.swallow for each row execute function shop.keep()'));
$source->sql('create table shop.swallow (id int primary key)', 'insert into shop.swallow values (1)');
$pipeline->wait_for_table_state('swallow', 'stopped');
is($pipeline->table_status('swallow', 'last_error'), 'view "swallow" cannot be the target of a source table', 'INSTEAD OF triggers are refused');
like($pipeline->table_status('swallow', 'last_error_detail'), qr/INSTEAD OF triggers, which do not fire/, 'detail');

# what the far side refuses stops the table, the others go on
$far->('alter table far add check (v < 5000)');
$source->sql('insert into shop.far values (3000, 1, null)', 'insert into shop.far values (3001, 5000, null)', 'insert into shop.seen values (3000, 1, null)');
$pipeline->wait_for_table_state('far', 'stopped')->wait_for_catchup;
is($pipeline->table_status('far', 'last_error_sqlstate'), '23514', 'the SQLSTATE of the far side');
unlike($pipeline->table_status('far', "concat(last_error, last_error_detail)"), qr/5000/, 'no value in the error');
is($far->('select max(id) from far'), '3000', 'everything before it is there');
$pipeline->is_same('the others go on', 'seen');

done_testing();
