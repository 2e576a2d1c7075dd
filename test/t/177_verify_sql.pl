# cdc_verify() of targets that only SQL can read: foreign tables (of another database, by postgres_fdw), partitioned tables with foreign
# leaves, views. Under writers nothing is found; what is planted is, also what a primary key would have kept out.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $rows = 500;
my $source = CdcBridge::Source->new(args => ['--sync-binlog=1']);
my $postgres = CdcBridge::Postgres->new;
plan skip_all => 'postgres_fdw is not installed' if $postgres->psql("select count(*) from pg_available_extensions where name = 'postgres_fdw'") eq '0';
my $all = join(', ', map { "($_, 'k$_', $_, 'n$_')" } 1 .. $rows);
$source->sql('create database shop', map { ("create table shop.$_ (id int, k varchar(10), v int, name varchar(20), primary key (k, id)) default charset utf8mb4", "insert into shop.$_ values $all") } qw(far spread seen));
$postgres->psql('create database far');
my $far = sub { my ($sql) = @_; my ($status, $out, $err) = $postgres->try_psql("\\c far\n$sql"); die $err if $status; return; };
my $columns = 'id int, k text, v int, name text';
$far->("create table far ($columns); create index on far (k, id); create table spread_2 ($columns); create index on spread_2 (k, id)");
my ($host, $port) = ($postgres->host, $postgres->port);
$postgres->psql(join(";\n", 'set client_min_messages = warning', 'create extension postgres_fdw', 'create schema shop',
	"create server far foreign data wrapper postgres_fdw options (host '$host', port '$port', dbname 'far')", q{create user mapping for public server far options (user 'postgres')},
	"create foreign table shop.far ($columns) server far options (schema_name 'public', table_name 'far')",
	"create table shop.spread ($columns) partition by range (id)", 'create table shop.spread_1 partition of shop.spread for values from (0) to (100)',
	q{create foreign table shop.spread_2 partition of shop.spread for values from (100) to (1000000) server far options (schema_name 'public', table_name 'spread_2')},
	"create table shop.behind (k text, hidden int default 4, id int, name text, v int)", 'create index on shop.behind (k, id)', 'create view shop.seen as select id, k, v, name from shop.behind'));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"snapshot_chunk_rows": 100}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables;
is($pipeline->status('tables_streaming'), 3, 'all stream') or diag($pipeline->describe);

my $last_done = sub { return "select string_agg(concat_ws(' ', source_table, method, rows_source, rows_target), ', ' order by source_table) from pg_stat_cdc_verify where request = $pipeline->{verify_request}"; };
$pipeline->is_verified('nothing moves: nothing is found');
is($postgres->psql($last_done->()), "far rows $rows $rows, seen rows $rows $rows, spread rows $rows $rows", 'all rows of both sides were looked at');
is($pipeline->verify_mode($_), '', "mode $_") for qw(count sample);

my $seed = $ENV{CDC_SEED} // time();
note("seed $seed");
$source->{seed} = $seed;
$source->start_writers(3, sub {
	my ($dbh) = @_;
	my $table = (qw(far spread seen))[ rand 3 ];
	my $id = 1 + int(rand(300));
	my $dice = rand();
	$dbh->do($dice < 0.4 ? "replace into shop.$table values ($id, 'k$id', " . int(rand(1000)) . ", 'r')" : $dice < 0.5 ? "delete from shop.$table where id = $id" : "update shop.$table set v = v + 1 where id = $id");
});
is($pipeline->verify =~ s/^\w+: 0 missing, 0 extra, 0 different, \d+ unsettled, done\n//mgr, '', 'under writers nothing is found');

$far->(join(';', 'delete from far where id = 400', 'update far set name = null where id = 401', q{insert into far values (402, 'other', 1, 'x'), (403, 'k403', 403, 'n403')},
	'update spread_2 set v = v + 1 where id = 450', 'delete from spread_2 where id = 451'));
$postgres->psql(join(';', q{insert into shop.spread_1 values (0, 'k0', 1, 'x')}, 'delete from shop.behind where id = 470', q{update shop.behind set name = '' where id = 471}, q{update shop.behind set hidden = 5 where id = 472},
	q{insert into shop.behind (id, k) values (473, 'K473'), (-1, '~')}));
my @found = grep { !/: 0 missing, 0 extra, 0 different, \d+ unsettled, done$/ } split(/\n/, $pipeline->verify);
is(join("\n", grep { !/: \d+ missing, / } @found), join("\n", 'far: different {k401,401} {name}', 'far: extra {k403,403}', 'far: extra {other,402}', 'far: missing {k400,400}',
	'seen: different {k471,471} {name}', 'seen: extra {K473,473}', 'seen: extra {~,-1}', 'seen: missing {k470,470}',
	'spread: different {k450,450} {v}', 'spread: extra {k0,0}', 'spread: missing {k451,451}'), 'each planted difference is found with its column, a row that is there twice too, and nothing else');
$source->stop_writers;
is($pipeline->verify_mode('count', 'seen'), "seen: 0 missing, 1 extra, 0 different, 0 unsettled, done\n", 'counting sees one too many');

$postgres->psql(q{insert into shop.behind (id, k) values (null, 'nothing')});
like($pipeline->verify('seen', 'spread'), qr/^seen: .* failed: null value in the key of table "seen"$/m, 'a null in the key is told');

# who looks
$postgres->psql('create role other; alter view shop.seen owner to other; grant usage on schema shop to other; grant select on shop.behind to other');
my $as_other = $pipeline->verify('seen');
like($as_other, qr/^seen: .* failed: null value in the key/m, 'a view of somebody else is read as its owner');
$postgres->psql('revoke select on shop.behind from other');
like($pipeline->verify('seen'), qr/^seen: .* failed: permission denied for table behind/m, 'with the rights of its owner');

done_testing();
