# Chunks of a copy that several processes read go through transforms and routes too; not where an expression may only run in the worker itself. An expression that
# throws in one of those processes stops its table.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use JSON::PP ();
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $json = JSON::PP->new->canonical;
my %option = (snapshot_workers => 3, snapshot_chunk_rows => 2000, routes => [ { source => 'shop.*', schema => 'lake' } ]);
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.safe}', options => $json->encode({ %option,
	transforms => [ { tables => 'shop.safe', projection => 'id, shop.mask(name) AS name, n + 1 AS next', filter => 'n % 3 <> 0' } ] }))->setup;
$postgres->psql(<<'SQL');
create schema shop;
create schema lake;
-- slow enough for other processes to be worth their start
create function shop.mask(t text) returns text language plpgsql immutable parallel safe as $$ begin for i in 1 .. 40 loop t := md5(t); end loop; return left(t, 6); end $$;
create function shop.alone(t text) returns text language plpgsql immutable as $$ begin return left(t, 2) || length(t); end $$;
create table shop.safe (id int primary key, n int not null, name text);
alter table shop.safe replica identity full;
insert into shop.safe select i, i % 1000, md5(i::text) from generate_series(1, 30000) i;
create table shop.alone as select * from shop.safe;
alter table shop.alone add primary key (id);
create view lake.safe as select id, shop.mask(name) as name, n + 1 as next from shop.safe where n % 3 <> 0;
SQL
$export->start;
$postgres->psql("update shop.safe set n = n + 1 where id % 1000 = $_") for 1 .. 20;
$export->wait_for_state('streaming')->wait_for_all;
cmp_ok($export->status('parallel_chunks'), '>=', 1, 'several processes have read chunks: ' . $export->status('parallel_chunks'));
$export->is_replayed('lake', 'safe', 'id', 'and what came is what the expressions give');

my $alone = CdcBridge::Export->new(postgres => $postgres, name => 'alone', server => 'files', dir => $export->{dir}, tables => '{shop.alone}',
	options => $json->encode({ %option, transforms => [ { tables => 'shop.alone', projection => 'id, shop.alone(name) AS name' } ] }));
$alone->start->wait_for_state('streaming')->wait_for_all;
is($alone->status('parallel_chunks'), '0', 'a function that is not PARALLEL SAFE is called by the worker alone');
my $copied = () = join('', map { slurp($_) } $alone->files) =~ /"op":"r"/g;
is($copied, 30000, 'and all rows come');

# one row far behind, so that another process meets it
$postgres->psql('insert into shop.safe values (90001, 0, null); update shop.safe set n = 1 where id = 90001');
$export->wait_for_all;
$postgres->psql(q{create or replace function shop.mask(t text) returns text language plpgsql immutable parallel safe as $$ begin return left(t, 2) || 1 / length(coalesce(t, '')); end $$});
$postgres->psql(q{select cdc_resync_table('shop_out', 'shop.safe')});
$postgres->poll("select state || ' ' || last_error_sqlstate from pg_stat_cdc_export_table where pipeline = 'shop_out'", 'stopped 22012', 60) or die "it does not stop\n" . $export->describe;
like($postgres->psql("select last_error from pg_stat_cdc_export_table where pipeline = 'shop_out'"), qr/column "name" of the projection of table shop\.safe cannot be computed: division by zero/, 'what throws in one of them stops the table');
$export->wait_for_state('streaming');
is($export->status('last_error'), '', 'and not the pipeline');

done_testing();
