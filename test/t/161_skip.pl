# One source transaction is passed over by wish: the one that a pipeline failed in, one that is named by position or GTID, also while
# the pipeline runs. The others are there, and a crash between does not apply it after all.

use strict;
use warnings;

use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'create table shop.x (id int primary key, v int)',
	'insert into shop.t values (1, 1)');
$source->sql(q{grant xa_recover_admin on *.* to 'repl'@'%'}) if $source->is_mysql;

my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"batch_max_ms": 0}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my $skipped = sub { return $pipeline->status('transactions_skipped'); };
my $target = sub { return $postgres->psql("select coalesce(string_agg(id::text, ',' order by id), '') from shop.$_[0]"); };
my $row = sub { return $postgres->psql('select skipped_at is not null, coalesce(skipped_position, $$-$$), coalesce(skipped_changes, -1) from cdc_bridge.skipped_transaction order by skip_id desc limit 1'); };

# ---- the one that it failed in
# an XA transaction whose kept changes were damaged
my $early = $source->connect;
$early->do($_) for ("xa start 'early'", 'insert into shop.x values (1, 1)', "xa end 'early'", "xa prepare 'early'");
$early->disconnect;
ok($postgres->poll('select count(*) from cdc_bridge.prepared_change', '1'), 'a prepared transaction is kept');
$postgres->psql(q{update cdc_bridge.prepared_change set data = substr(data, 1, length(data) - 1)});
$source->sql('insert into shop.t values (2, 2)');
$source->sql("xa commit 'early'");
$source->sql('insert into shop.t values (3, 3)');
$pipeline->wait_for_state('failed');
like($pipeline->status('last_error'), qr/^kept changes of an XA transaction of pipeline "shop_in" are damaged$/, 'the pipeline fails at the XA COMMIT');
is($pipeline->status('last_error_sqlstate'), '22000', 'with SQLSTATE');
like($pipeline->status('last_error_hint'), qr/cdc_skip_transaction\(\)/, 'and a way out');
is($target->('t'), '1,2', 'with all before it applied');
like($pipeline->status('last_error_position'), qr/:\d+$/, 'it tells where');
my $where = $pipeline->status('last_error_position');
$postgres->psql("select cdc_skip_transaction('shop_in')");
like($postgres->{messages}, qr/will pass over the source transaction that starts at \Q$where\E/, 'that one is meant');
is($pipeline->state, 'failed', 'it stays failed until it is started');
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
is($target->('t'), '1,2,3', 'what follows is there');
is($target->('x'), '', 'what was passed over is not');
is($skipped->(), '1', 'it is counted');
is($row->(), "t|$where|1", 'and written down');
is($postgres->psql('select count(*) from cdc_bridge.prepared_change'), '0', 'nothing of it is kept');
like($postgres->log_text, qr/source transaction at \Q$where\E is passed over by pipeline "shop_in"/, 'and logged');
$source->sql('delete from shop.x');

# ---- an error at COMMIT: which transaction is not known, the position is
$postgres->psql(<<'SQL');
create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'not these'; end $$;
create constraint trigger refuse after insert on shop.t deferrable initially deferred for each row when (new.v = 4) execute function public.refuse();
alter table shop.t enable always trigger refuse;
SQL
my ($file, $offset) = $source->binlog_position;
$source->sql('begin', 'insert into shop.t values (4, 4)', 'insert into shop.t values (5, 4)', 'commit');
$source->sql('insert into shop.t values (6, 6)');
$pipeline->wait_for_state(qr/failed|retrying/);
like($postgres->psql_error("select cdc_skip_transaction('shop_in')"), qr/has not failed inside a source transaction/, 'an error at COMMIT belongs to none');
$postgres->psql("select cdc_skip_transaction('shop_in', at => '$file:$offset')");
$postgres->psql("select cdc_start_pipeline('shop_in')");
$pipeline->wait_for_state('streaming')->wait_for_catchup;
is($target->('t'), '1,2,3,6', 'named by its position it is passed over');
is($skipped->(), '2', 'and counted');
is($row->(), "t|$file:$offset|2", 'with its changes');
$postgres->psql('drop trigger refuse on shop.t');

# ---- while it runs, one that is to come; by GTID
my $ask = sub {
	my ($argument) = @_;
	my $pid = $pipeline->status('ingest_pid');
	$postgres->psql("select cdc_skip_transaction('shop_in', $argument)");
	$postgres->poll("select state = 'streaming' and ingest_pid <> $pid from pg_stat_cdc_pipeline", 't') or die "the worker does not start anew\n";
};
($file, $offset) = $source->binlog_position;
$ask->("at => '$file:$offset'");
$source->sql('insert into shop.t values (7, 7)', 'insert into shop.t values (8, 8)');
$pipeline->wait_for_catchup;
is($target->('t'), '1,2,3,6,8', 'a running pipeline takes a request up');
my $gtid;
if ($source->is_mysql)
{
	my $uuid = $source->query_value('select @@server_uuid');
	my ($last) = $source->query_value('select @@gtid_executed') =~ /\Q$uuid\E:(?:\d+-)?(\d+)/;
	$gtid = "$uuid:" . ($last + 1);
}
else
{
	my ($domain, $server, $last) = $source->query_value('select @@gtid_binlog_pos') =~ /(\d+)-(\d+)-(\d+)/;
	$gtid = "$domain-$server-" . ($last + 1);
}
$ask->("gtid => '$gtid'");
$source->sql('update shop.t set v = -1 where id = 8', 'insert into shop.t values (9, 9)');
$pipeline->wait_for_catchup;
is($postgres->psql('select v from shop.t where id = 8'), '8', 'a GTID names one too');
is($target->('t'), '1,2,3,6,8,9', 'and what follows is there');
is($skipped->(), '4', 'all are counted');
like($postgres->psql_error("select cdc_skip_transaction('shop_in', gtid => '$gtid')"), qr/has passed that transaction already/, 'what is past cannot be asked for');
like($postgres->psql_error("select cdc_skip_transaction('shop_in', at => '$file:$offset')"), qr/has passed that transaction already/, 'neither by position');

# ---- a crash: the request holds
$pipeline->stop;
($file, $offset) = $source->binlog_position;
$source->sql('insert into shop.t values (10, 10)', 'insert into shop.t values (11, 11)');
$postgres->psql("select cdc_skip_transaction('shop_in', at => '$file:$offset')");
$pipeline->start;
$postgres->kill9->start;
$pipeline->wait_for_state('streaming')->wait_for_catchup;
is($target->('t'), '1,2,3,6,8,9,11', 'after a crash it is still passed over, once');
is($skipped->(), '5', 'and counted once');

done_testing();
