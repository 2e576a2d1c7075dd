# cells: pg15 pg18
# The event triggers behind schema changes: on only while they are wanted, no statement fails of them, nobody is fooled by them, no dump has them.

use strict;
use warnings;

use CdcBridge::Decode;
use CdcBridge::Env qw(new_folder run_program slurp);
use CdcBridge::Export;
use CdcBridge::Postgres;
use IO::Handle;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "max_prepared_transactions = 5\n");
my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*,many.*,lots.*}', options => '{"format": "json", "messages": true}')->setup;
$postgres->psql("create role nobody login; create schema shop; grant usage, create on schema shop to nobody; create table shop.t (id int primary key);
	create table shop.parent (id int primary key); create table shop.child () inherits (shop.parent); alter table shop.child add primary key (id)");
my $state = sub { return $postgres->psql("select string_agg(distinct evtenabled::text, '') from pg_event_trigger", @_); };
is($state->(), 'D', 'off after CREATE EXTENSION');
$postgres->psql("begin; select cdc_create_pipeline('shop_out', sink => 'files', tables => '{shop.*}'); select cdc_start_pipeline('shop_out'); rollback");
is($state->(), 'D', 'and after the rollback of what made an outgoing pipeline');
$export->start->wait_for_state('streaming');
is($state->(), 'A', 'on with an outgoing pipeline');
$postgres->psql("select cdc_create_pipeline('second', sink => 'files', tables => '{shop.*}'); select cdc_drop_pipeline('second')");
is($state->(), 'A', 'also when another one goes');

# whoever drops the last one that wants them waits for one that is just made
open(my $session, '|-', "'$postgres->{bindir}/psql' -X -q -h '$postgres->{dir}' -p $postgres->{port} -U postgres >/dev/null 2>&1") or die "psql: $!";
$session->autoflush(1);
print $session "begin; select cdc_create_pipeline('third', sink => 'files', tables => '{shop.*}');\n";
$postgres->poll("select count(*) from pg_stat_activity where state = 'idle in transaction' and query like '%third%'", '1') or die 'no transaction is open';
open(my $dropping, '|-', "'$postgres->{bindir}/psql' -X -q -h '$postgres->{dir}' -p $postgres->{port} -U postgres >/dev/null 2>&1") or die "psql: $!";
$dropping->autoflush(1);
print $dropping "select cdc_drop_pipeline('shop_out');\n";
ok($postgres->poll("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%drop_pipeline%'", '1'), 'one that drops the last one waits for one that makes another one');
print $session "commit;\n";
close($_) for $session, $dropping;
is($postgres->psql('select string_agg(pipeline, $$ $$) from pg_stat_cdc_export') . ' ' . $state->(), 'third A', 'and leaves them on');
$postgres->psql("select cdc_drop_pipeline('third')");
delete $export->{created};
$postgres->poll('select count(*) from pg_replication_slots', '0');
system('rm', '-rf', $export->folder);
$export->start->wait_for_state('streaming');

my ($seen, $said) = (0);
sub after
{
	my ($sql, %option) = @_;
	$postgres->psql($sql, %option);
	$said = $postgres->{messages};
	$export->wait_for_all;
	my @records = $export->records;
	splice(@records, 0, $seen);
	$seen += @records;
	return @records;
}
sub brief { return join(' ', map { $_->{op} eq 'schema' ? "$_->{change}:$_->{table}" : $_->{op} } @_); }

# ---- whoever runs the statement
is(brief(after('create table shop.n (id int primary key); alter table shop.n add column x int', user => 'nobody')), 'create:n alter:n', 'a role without any rights');
like($postgres->psql_error('select cdc_bridge.schema_change()', user => 'nobody'), qr/can only be called|permission denied/, 'which cannot call the function');
$postgres->psql('revoke execute on function pg_catalog.pg_event_trigger_ddl_commands(), pg_catalog.pg_event_trigger_dropped_objects() from public');
is(brief(after('alter table shop.n add column y int; drop table shop.n', user => 'nobody')), 'alter:n drop:n', 'nor what the function reads');
$postgres->psql(<<'SQL');
create schema evil;
create function evil.raises(text, text) returns boolean language plpgsql as $$ begin raise exception 'evil was here'; end $$;
create operator evil.= (leftarg = text, rightarg = text, function = evil.raises);
create function evil.pg_event_trigger_ddl_commands() returns setof pg_class language sql as 'select * from pg_catalog.pg_class';
create table evil.pg_class (oid oid); create domain evil.text as int;
SQL
is(brief(after('set search_path = evil, pg_catalog, shop; create table shop.n (id pg_catalog.int4 primary key, v pg_catalog.text default $$a$$); drop table shop.n')), 'create:n drop:n', 'search_path changes nothing');
is(brief(after('set session_replication_role = replica; alter table shop.t add column r int')), 'alter:t', 'they fire under session_replication_role = replica too');
is(brief(after('create extension hstore; create table shop.h (id int primary key, h public.hstore); drop extension hstore cascade')), 'create:h alter:h', 'an extension comes, and goes with a column');

# ---- a failure inside
$postgres->psql("begin; lock table pg_catalog.pg_inherits in access exclusive mode; prepare transaction 'holds'");
is(brief(after("set lock_timeout = '200ms'; alter table shop.parent set without cluster; insert into shop.parent values (1)")), 'insert', 'a statement does not fail when its message does');
like($said, qr/WARNING:  55P03: outgoing pipelines do not hear what ALTER TABLE did to tables\nDETAIL:  canceling statement due to lock timeout/, 'but a warning says so');
$postgres->psql("rollback prepared 'holds'");
is(brief(after('alter table shop.parent set without cluster')), 'alter:parent alter:child', 'and the next one is told');

# ---- what failed in the same transaction does not count
my @got = after("begin; savepoint a; alter table shop.t add column f float8 default random(); rollback to a; alter table shop.t add column g int; commit;
	do \$\$ begin begin alter table shop.t add column f float8 default random(); raise exception 'no'; exception when others then null; end; alter table shop.t add column h int; end \$\$");
is_deeply([ map { "$_->{change}" . ($_->{rewritten} ? ' rewritten' : '') } @got ], [ 'alter', 'alter' ], 'a rewrite that was rolled back is none');

# ---- statements that end transactions of their own
is(brief(after('create index concurrently t_r on shop.t (r)')), '', 'CREATE INDEX CONCURRENTLY works, and is no change of a table');
is(brief(after('reindex table concurrently shop.t')), '', 'so does REINDEX CONCURRENTLY');
$postgres->psql('create table shop.p (id int primary key) partition by list (id); create table shop.p1 partition of shop.p for values in (1)');
after('');
is(brief(after('alter table shop.p detach partition shop.p1 concurrently')), '', 'and DETACH PARTITION CONCURRENTLY, of a table that has no rows of its own');
is(brief(after("begin; alter table shop.p1 add column two int; prepare transaction 'ddl'")), '', 'a prepared transaction tells nothing');
is(brief(after("commit prepared 'ddl'")), 'alter:p1', 'before its end');

# ---- many tables in one statement
$postgres->psql('create schema many; do $$ begin for i in 1..900 loop execute format($f$create table many.t%s (id int primary key)$f$, i); end loop; end $$');
is(scalar(after('')), 900, '900 tables');
@got = after('alter schema many rename to lots');
is_deeply([ scalar(@got), scalar(grep { $_->{op} eq 'schema' && $_->{previous}{schema} eq 'many' } @got) ], [ 900, 900 ], 'a schema with 900 tables gets another name: more than one message');
my $slot = CdcBridge::Decode->new($postgres, 'published', schema_changes => 'true', publication_names => 'p');
$postgres->psql('do $$ begin execute (select $q$create publication p for table $q$ || string_agg($q$lots.t$q$ || i, $q$, $q$) from generate_series(1, 900) i); end $$');
is(scalar(@{ [ after('drop schema lots cascade') ] }), 900, 'and is dropped');
is(scalar(grep { $_->{change} eq 'drop' } $slot->take), 900, 'which a reader by publications hears too, although they have them no more');
$slot->drop;

# ---- messages that somebody else wrote
sub forged
{
	my ($kind, $relid, $command, @rest) = @_;
	my $text = join('', map { length($_) . ":$_," } 1, $kind, $relid, $command, @rest);
	return "select pg_logical_emit_message(true, 'cdc_bridge.schema_change', '$text');";
}
my $oid = $postgres->psql("select 'shop.t'::regclass::oid");
@got = after(join('', forged('d', $oid, 'DROP TABLE', 'shop', 't', '', '', '', '', ''), forged('t', 1259, 'ALTER TABLE', 'shop', 't', '', '', '', '', ''), forged('t', 4000000000, 'ALTER TABLE', 'shop', 't', '', '', '', '', ''),
	forged('p', 0, 'DROP TABLE', 'shop', '', '', '', '', 'p', ''), forged('t', $oid, 'ALTER TABLE', 'shop', 'x', 'shop', 'parent', 'g', 'r', '')), user => 'nobody');
is(brief(@got), 'alter:t', 'forged messages: nothing that the catalogs do not agree with');
ok(!$got[0]{previous} && !$got[0]{renamed_column}, 'no names of others');
is(brief(after(join('', map { "select pg_logical_emit_message(true, 'cdc_bridge.schema_change', '$_');" } '', '1:1', '2:1,', '1:1,1:t,', '1:1,99999999999999999999:', "1:1,1:t,1:1,7:EVIL IT,4:shop,1:t,0:,0:,0:,0:,0:,"), user => 'nobody')),
	'message message message message message message', 'and what has another form is anybody\'s message');

# ---- dumps
my $folder = new_folder('dump');
$postgres->psql('create database copy');
run_program("$folder/dump.log", "$postgres->{bindir}/pg_dump", '-h', $postgres->{dir}, '-p', $postgres->{port}, '-U', 'postgres', '-f', "$folder/dump.sql", 'postgres');
unlike(slurp("$folder/dump.sql"), qr/EVENT TRIGGER/, 'no dump has the triggers');
$postgres->psql(slurp("$folder/dump.sql"), database => 'copy');
is($state->(database => 'copy'), 'D', 'they are off in a database that was restored');
is($postgres->psql('select pipeline, state from pg_stat_cdc_export', database => 'copy'), 'shop_out|stopped', 'whose pipeline is stopped');
$postgres->psql("select cdc_start_pipeline('shop_out')", database => 'copy');
is($state->(database => 'copy'), 'A', 'until it is started');
$postgres->psql("select cdc_drop_pipeline('shop_out')", database => 'copy');

# ---- by hand, and the end
my $check = sub { return $postgres->psql("select status, hint from cdc_check_pipeline('shop_out') where \"check\" = 'schema changes'"); };
is($check->(), 'ok|', 'cdc_check_pipeline: they fire');
$postgres->psql('alter event trigger cdc_bridge_schema_drop disable');
is($check->(), 'warning|Run ALTER EVENT TRIGGER cdc_bridge_schema_drop ENABLE ALWAYS as a superuser.', 'and when somebody has switched one off');
$postgres->psql('alter event trigger cdc_bridge_schema_drop enable always');
$postgres->psql('set client_min_messages = warning; drop extension cdc_bridge cascade; create table shop.after (id int); alter table shop.after add column x int; drop table shop.after');
is($postgres->psql('select count(*) from pg_event_trigger'), '0', 'DROP EXTENSION takes them with it');

done_testing();
