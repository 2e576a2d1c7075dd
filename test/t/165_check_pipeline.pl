# cdc_check_pipeline finds what is wrong with a pipeline, at this server, at its source and at its tables, and changes nothing; limits
# of this server that are too low are named before a worker runs into them.

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $source = CdcBridge::Source->new;
my $postgres = CdcBridge::Postgres->new;
$source->sql('create database shop', map { ("create table shop.$_ (id int primary key, v int)", "insert into shop.$_ values (1, 1)") } qw(a b c d));
my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $postgres, options => '{"schema_changes": "exception"}')->setup->start;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
my $lines = sub {
	return $postgres->psql(qq{select "check", status, detail, hint from cdc_check_pipeline('shop_in') where $_[0]});
};

is($lines->("status = 'error'"), '', 'a pipeline that runs well has no error');
like($lines->(q{"check" = 'state'}), qr/^state\|ok\|The pipeline is streaming/, 'its state');
like($lines->(q{"check" = 'position'}), qr/^position\|ok\|/, 'its position is in the log');
like($lines->(q{"check" = 'binlog_format'}), qr/\|ok\|/, 'the source is asked too');
like($lines->(q{"check" = 'tables'}), qr/of all 4 tables are as they should be/, 'its tables');
like($lines->(q{"check" = 'cdc_bridge.max_tables'}), qr/\|ok\|/, 'its counters');
$postgres->psql("select cdc_add_table('shop_in', 'other.nosuch')");
like($lines->(q{"check" = 'pattern other.nosuch'}), qr/\|warning\|.*no table that fits.*cdc_remove_table\('shop_in', 'other.nosuch'\)/, 'a name that the source does not have');
$postgres->psql("select cdc_remove_table('shop_in', 'other.nosuch')");
is($lines->(q{"check" like 'pattern %'}), '', 'no line for a pattern that has tables');
my $pid = $pipeline->status('ingest_pid');

# tables: dropped, of another type, without rights, stopped
$postgres->psql('create role ann; drop table shop.a; alter table shop.b alter v type date using null');
$source->sql('alter table shop.c add w int');
$pipeline->wait_for_table_state('c', 'stopped');
like($lines->(q{"check" = 'table shop.a'}), qr/\|error\|.*does not exist any more/, 'a target that is gone');
like($lines->(q{"check" = 'table shop.b'}), qr/\|error\|.*does not fit.*\bv\b/s, 'a target that does not fit');
like($lines->(q{"check" = 'table shop.c'}), qr/\|error\|The table is stopped: .*changed.*\|.+/, 'a stopped table, with its remedy');
is($lines->(q{"check" in ('tables', 'table shop.d')}), '', 'no line for a table that is well');
$pipeline->stop;
like($lines->(q{"check" = 'state'}), qr/\|ok\|The pipeline is stopped/, 'a stopped pipeline can be checked too');
like($lines->(q{"check" = 'position'}), qr/\|ok\|/, 'with its position');

# somebody holds a lock: the check does not wait
{
	my $session = $postgres->hold('lock table shop.d in access exclusive mode');
	ok($postgres->poll("select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and relation = 'shop.d'::regclass", '1'), 'a session locks a table');
	like($postgres->psql(q{set statement_timeout = '60s'; select "check", status, detail from cdc_check_pipeline('shop_in') where "check" = 'table shop.d'}),
		qr/\|warning\|.*is locked by somebody/, 'a table that is locked');
	$postgres->release($session);
}

# the source: purged log
$source->sql('flush binary logs', 'insert into shop.d values (2, 2)');
like($lines->(q{"check" = 'position'}), qr/\|warning\|.*oldest/, 'a position in the oldest log');
$source->sql('flush binary logs');
my ($now) = $source->binlog_position;
# the server keeps a file as long as it takes it to notice that its reader is gone
poll_until(sub {
	$source->sql('insert into shop.d values (2, 2) on duplicate key update v = v + 1', "purge binary logs to '$now'");
	return ($source->query_rows('show binary logs'))[0][0] eq $now;    # else nothing is missing: what the position's own file had is applied
}, 60);
like($lines->(q{"check" = 'position'}), qr/\|error\|.*no longer has the position/, 'a position that was purged');
$source->stop;
like($lines->(q{"check" = 'connection'}), qr/\|error\|/, 'a source that does not answer');
$pipeline->drop;

# limits: two origins for each pipeline
my $setting = $postgres->major >= 18 ? 'max_active_replication_origins' : 'max_replication_slots';
$postgres->append_conf("$setting = 1");
$postgres->restart;
$source->start;
$pipeline->drop_target->start;
like($postgres->{messages}, qr/WARNING:.*$setting may be too low.*ALTER SYSTEM SET $setting = \d+/s, 'the start warns of a limit that is too low');
my ($told) = $postgres->{messages} =~ /ALTER SYSTEM SET $setting = (\d+)/;
is($postgres->psql(qq{select hint from cdc_check() where "check" = '$setting'}) =~ s/\D*(\d+).*/$1/r, $told, 'with the same figure as cdc_check(): room for all pipelines that should run');
$pipeline->wait_for_status('last_error', qr/too few replication origins/);
like($pipeline->status('last_error_detail'), qr/$setting is 1; others use 0, this pipeline needs 2/, 'no worker starts, and the reason is told');
like($pipeline->status('last_error_hint'), qr/ALTER SYSTEM SET $setting = \d+ and restart/, 'with the line that helps');
is($pipeline->state, 'retrying', 'it tries again');
like($lines->(qq{"check" = '$setting'}), qr/\|error\|.*ALTER SYSTEM/, 'the check says the same');
$postgres->append_conf("$setting = 2");
$postgres->restart;
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('with enough it runs');

done_testing();
