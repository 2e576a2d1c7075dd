# A chunk of a copy has the rows of now, so the rights of now count for it, also while the stream is still far behind.
# cells: pg15 pg18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $postgres)->setup;
$postgres->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, name text);
create table shop.other (id int primary key, secret text);
insert into shop.other select i, 'open' from generate_series(1, 20000) i;
create role owner_of_it login;
grant usage on schema shop to owner_of_it;
grant select on all tables in schema shop to owner_of_it;
grant usage on foreign server files to owner_of_it;
grant execute on function cdc_create_pipeline to owner_of_it;
set role owner_of_it;
select cdc_create_pipeline('shop_out', sink => 'files', tables => '{shop.*}', options => '{"snapshot_chunk_rows": 100, "flush_max_ms": 0, "format": "json", "on_error": "stop"}');
SQL
$export->{created} = 1;
$export->start->wait_for_state('streaming')->stop;
# many transactions, so that the stream takes its time and copies in between
$postgres->psql('do $$ begin for i in 1 .. 20000 loop insert into shop.t values (i, i); commit; end loop; end $$');
$postgres->psql("select cdc_resync_table('shop_out', 'shop.other')");
$export->start;
$postgres->poll("select sum(chunks) > 0 and bool_and(table_state.state <> 'streaming') from pg_stat_cdc_export_table table_state where table_name = 'other'", 't', 30) or die "it is not copied: $postgres->{last}\n";
my $behind = $export->status('lag_bytes');
$postgres->psql("begin; revoke select on shop.other from owner_of_it; update shop.other set secret = 'hidden'; commit");
note("$behind bytes behind");
$export->wait_for_status('last_error_sqlstate', qr/^42501$/);
like($export->status('last_error'), qr/permission denied for table shop\.other/, 'a table that is copied, and may not be read any more');
ok(join('', map { slurp($_) } $export->files) !~ /hidden/, 'none of its rows of now is in a file');
$postgres->psql('grant select on shop.other to owner_of_it');
$export->wait_for_state('streaming')->wait_for_all;
my %last = map { $_->{key}{id} => $_->{row}{secret} } grep { ($_->{table} // '') eq 'other' && $_->{row} } $export->records;
is(scalar(grep { $_ eq 'hidden' } values %last), 20000, 'given back, all of them are');

done_testing();
