# cells: pg18
# pg_upgrade (to the same version, which it allows) of a server with an outgoing pipeline: the event triggers do not disturb it and come along
# as they were; the pipeline does not go on by guess, as the places in the log are others now.

use strict;
use warnings;

use CdcBridge::Env qw(new_folder run_program slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use Test::More;

my $old = CdcBridge::Postgres->new;
my $export = CdcBridge::Export->new(postgres => $old)->setup;
$old->psql(<<'SQL');
create schema shop;
create table shop.t (id int primary key, v text);
create table shop.p (id int, k int) partition by list (k);
create table shop.p1 partition of shop.p for values in (1);
alter table shop.p1 replica identity full;
create index on shop.p (id);
create materialized view shop.m as select 1 as a;
create rule r as on insert to shop.t do also nothing;
create policy pol on shop.t;
create publication pp for all tables;
SQL
$export->start->wait_for_state('streaming');
$old->psql("alter table shop.t add column z int default 3; insert into shop.t values (1, 'x')");
$export->wait_for_all;
$export->stop;
# what the stop itself has written is still to be decoded, and pg_upgrade takes no slot along that is not through with the log
$old->psql("select pg_drop_replication_slot('" . $export->status('slot_name') . "')");
$old->stop;

# a cluster of its own: those that the tests start with are copies of one, with its system identifier
my $new = CdcBridge::Postgres->new->stop;
my $folder = new_folder('upgrade');
my $conf = slurp("$new->{dir}/data/postgresql.conf");
system('rm', '-rf', "$new->{dir}/data") == 0 or die "$new->{dir}/data cannot be removed\n";
run_program("$folder/initdb", "$new->{bindir}/initdb", '--no-sync', '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '-D', "$new->{dir}/data");
$new->append_conf($conf);
$new->start->allow_output_plugin->stop;
my @command = ("$new->{bindir}/pg_upgrade", '-b', $old->bindir, '-B', $new->bindir, '-d', "$old->{dir}/data", '-D', "$new->{dir}/data", '-U', 'postgres', '-s', $old->dir, '-p', $old->port, '-P', $new->port);
is(system("cd '$folder' && " . join(' ', map { "'$_'" } @command) . " >'$folder/out' 2>&1"), 0, 'pg_upgrade') or diag(slurp("$folder/out"));
$new->start;
is($new->psql('select string_agg(evtname || $$ $$ || evtenabled::text, $$, $$ order by evtname) from pg_event_trigger'), 'cdc_bridge_schema_change A, cdc_bridge_schema_drop A, cdc_bridge_schema_rewrite A', 'the event triggers are there, and on');
is($new->psql("select count(*) from pg_depend where classid = 'pg_event_trigger'::regclass and deptype = 'e'"), '3', 'as members of the extension');
my $after = bless { %$export, postgres => $new }, ref $export;
is($after->status('state'), 'stopped', 'the pipeline is stopped as before');
$new->psql('create table shop.n (id int primary key); alter table shop.n add column x int; drop table shop.n');
unlike($new->log_text, qr/do not hear/, 'statements are told');
$after->start;
$after->wait_for_state('failed');
is($after->status('last_error_sqlstate'), '55000', 'the pipeline sees that this is another server');
$new->psql("select cdc_start_pipeline('shop_out', confirm_move => true)");
$after->wait_for_status('last_error_sqlstate', qr/^YC001$/);
like($after->status('last_error_detail'), qr/system identifier/, 'and that it has other places in its log');

done_testing();
