# cdc_export_pipeline(): one script that makes the same pipeline in another database, incoming and outgoing, field by field; no
# secret is in it, it can run twice, and the pipeline that it makes works.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new(conf => "wal_level = logical\n");
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, server_options => { heartbeat_interval => 300 })->setup;
$source->sql('create database shop', 'create table shop.orders (id int primary key, v int)', 'insert into shop.orders values (1, 1)', 'create table shop.log (id int primary key)');
my $folder = $postgres->{dir} . '/files';
mkdir $folder or die "$folder: $!";

# a definition with everything in it that wants care
my $password = $source->password;
$postgres->psql(<<"END");
create role "An n" login;
grant create on database postgres to "An n";
comment on server shop is 'the shop''s \\ server';
create user mapping for "An n" server shop options (username '${\ $source->user}', password '$password');
grant usage on foreign server shop to "An n";
create schema pub; create table pub.a (id int primary key, v int, w int); create table pub."B c" (id int primary key); alter table pub.a owner to "An n"; alter table pub."B c" owner to "An n"; grant usage on schema pub to "An n";
create schema shop_out; create publication "all of it" for table pub.a (id, v) where (id > 5 and v is distinct from 7) with (publish = 'insert, update'); create publication by_schema for tables in schema shop_out; create publication no_table; create publication everything for all tables with (publish_via_partition_root);
END
$postgres->psql(q{select cdc_create_pipeline('shop''s in', source => 'shop', tables => '{shop.*,"!shop.log","shop.o\\\\*"}', target_schema => 'the target',
	options => '{"on_error": "dead_letter", "zero_date": null, "column_types": {"shop.orders.v": "bigint"}, "snapshot_chunk_rows": 500}')});
$postgres->psql(q{select cdc_remove_table('shop''s in', 'shop.gone'); select cdc_alter_pipeline('shop''s in', owner => '"An n"')});
$postgres->psql("create server files foreign data wrapper cdc_file options (directory '$folder', file_max_kb '500'); grant usage on foreign server files to \"An n\"");
$postgres->psql(q{select cdc_create_pipeline('out', sink => 'files', tables => '{pub.*}', options => '{"format": "debezium-json", "publication_names": "\\"all of it\\", by_schema,no_table,everything", "flush_max_ms": 50}'); select cdc_alter_pipeline('out', owner => '"An n"')});

# what describes them, in one text, secrets aside
sub definition
{
	my ($db) = @_;
	return $postgres->psql(q{
		select name, owner, source, sink, tables, target_schema, options from cdc_bridge.pipeline order by name;
		select srvname, srvtype, srvversion, srvoptions, obj_description(oid, 'pg_foreign_server') from pg_foreign_server order by 1;
		select srvname, usename, (select array_agg(o order by o) from unnest(umoptions) o where o !~ '^password=') from pg_user_mappings where usename = 'An n' order by 1;
		select pubname, pubinsert, pubdelete, (select array_agg(concat_ws(' ', prrelid::regclass, prattrs, pg_get_expr(prqual, prrelid))) from pg_publication_rel where prpubid = p.oid),
			(select array_agg(pnnspid::regnamespace) from pg_publication_namespace where pnpubid = p.oid) from pg_publication p order by 1}, database => $db);
}

my %script = map { my ($name) = @$_; $name => $postgres->psql("select cdc_export_pipeline('$name')") } [ q{shop''s in} ], ['out'];
my $in = $script{q{shop''s in}};
unlike($in, qr/\Q$password\E/, 'the password is not in it');
like($in, qr/password '\*{8}'/, 'what stands for it is');
like($in, qr/username '\Q${\ $source->user}\E'/, 'the user is, for who may see it');
$postgres->psql('create role watcher in role pg_monitor; create role nobody');
unlike($postgres->psql(q{set role watcher; select cdc_export_pipeline('shop''s in')}), qr/username '\Q${\ $source->user}\E'/, 'not for whoever may only watch');
like($postgres->psql_error(q{set role nobody; select cdc_export_pipeline('shop''s in')}), qr/pipeline "shop's in" does not exist/, 'nothing for others');

# ---- in another database, twice
$postgres->psql('create database elsewhere');
$postgres->psql('create extension cdc_bridge; create schema pub; create table pub.a (id int primary key, v int, w int); create table pub."B c" (id int primary key); create schema shop_out;
	alter table pub.a owner to "An n"; alter table pub."B c" owner to "An n"; grant usage on schema pub to "An n"; grant create on database elsewhere to "An n"', database => 'elsewhere');
for my $round (1, 2)
{
	$postgres->psql("set client_min_messages = warning; $script{$_}", database => 'elsewhere') for sort keys %script;
	is(definition('elsewhere'), definition('postgres'), "the definitions are the same, round $round");
}
is($postgres->psql(q{select cdc_export_pipeline('shop''s in')}, database => 'elsewhere'), $in, 'and so is what they are exported as');
is($postgres->psql(q{select cdc_export_pipeline('out')}, database => 'elsewhere'), $script{out}, 'of the way out too');

# ---- with the secret in its place it runs
$postgres->psql(qq{alter user mapping for "An n" server shop options (set password '$password'); select cdc_start_pipeline('shop''s in')}, database => 'elsewhere');
sub rows { my ($status, $out) = $postgres->try_psql('select string_agg(o::text, \',\') from "the target".orders o', database => 'elsewhere'); return $out; }
my $end = time + 60;
select(undef, undef, undef, 0.1) until rows() eq '(1,1)' || time > $end;
is(rows(), '(1,1)', 'the pipeline that it made works') or diag($postgres->psql('select state, last_error from pg_stat_cdc_pipeline', database => 'elsewhere'));

# ---- names that would end a comment or a literal
$postgres->psql('create table pub.h (t text primary key)', database => $_) for 'postgres', 'elsewhere';
$postgres->psql(q{create publication hostile for table pub.h where (t <> $$x$cdc$'; drop schema pub cascade; --$$);
	select cdc_create_pipeline(E'x\ndrop schema pub cascade; --', sink => 'files', tables => '{pub.*}', options => '{"publication_names": "hostile"}')});
my $hostile = $postgres->psql(q{select cdc_export_pipeline(E'x\ndrop schema pub cascade; --')});
$postgres->psql("set client_min_messages = warning; $hostile", database => 'elsewhere');
is($postgres->psql(q{select count(*), (select count(*) from pg_tables where schemaname = 'pub') from pg_publication where pubname = 'hostile'}, database => 'elsewhere'), '1|3', 'nothing in them is run');
$postgres->psql(q{select cdc_drop_pipeline(E'x\ndrop schema pub cascade; --')});

# ---- a server that is gone
$postgres->psql(q{select cdc_drop_pipeline('out'); drop server files});
$postgres->psql("create server files foreign data wrapper cdc_null");
$postgres->psql(q{select cdc_create_pipeline('out', sink => 'files', tables => '{pub.*}'); drop server files});
like($postgres->psql(q{select cdc_export_pipeline('out')}), qr/^-- Its server files does not exist any more: make it first\.$/m, 'a server that is gone is told');

unlike($postgres->log_text, qr/\b(TRAP|PANIC):/, 'no assertion failed, no panic');
done_testing();
