# Logs that no longer have the position, were reset, or have other GTIDs than a plain row of numbers: what is missing is told exactly, and
# where nothing is missing the stream goes on.
# cells: mariadb-15 mysql-18

use strict;
use warnings;

use CdcBridge::Env qw(poll_until);
use CdcBridge::Pair;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $postgres = CdcBridge::Postgres->new;
my $is_mysql = ($ENV{CDC_SOURCE} // 'mariadb') eq 'mysql';
my $pipeline;

sub shop
{
	my ($source) = @_;
	$source->sql('create database shop', 'create table shop.t (id int primary key, v int)', 'insert into shop.t values (1, 1), (2, 2)');
	return $source;
}

sub begin
{
	my ($of) = @_;
	$pipeline->drop if $pipeline && $pipeline->{created};
	$postgres->psql('drop extension if exists cdc_bridge cascade');
	$pipeline = $of;
	$pipeline->drop_target->setup->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	return;
}

sub refused
{
	my ($name, $sqlstate, $detail) = @_;
	$pipeline->wait_for_state('failed');
	is($pipeline->status('last_error_sqlstate'), $sqlstate, "$name: $sqlstate");
	like($pipeline->status('last_error_detail'), $detail, "$name: the detail tells what is missing");
	like($pipeline->status('last_error_hint'), qr/anew => true/, "$name: the hint tells the way out");
	return;
}

# The last transaction of a server's own, and those of a range of its numbers, as messages name them.
sub last_number
{
	my ($source) = @_;
	my $gtids = $source->gtids;
	return $gtids =~ /(\d+)$/ ? $1 : die "no number in $gtids\n";
}

sub range
{
	my ($source, $from, $to) = @_;
	my $prefix = $is_mysql ? $source->query_value('select @@server_uuid') . ':' : '0-' . $source->query_value('select @@server_id') . '-';
	return $prefix . $to if $from == $to;
	return $is_mysql ? "$prefix$from-$to" : "$prefix$from to $prefix$to";
}

# ---- 1. purged logs

my $source = shop(CdcBridge::Source->new);
sub purge
{
	$source->sql('flush binary logs', @_);
	my ($file) = $source->binlog_position;
	# the server keeps a file as long as it takes it to notice that its reader is gone
	poll_until(sub {
		$source->sql("purge binary logs to '$file'");
		return ($source->query_rows('show binary logs'))[0][0] eq $file;
	}) or die "the log is not purged\n";
	return;
}
begin(CdcBridge::Pipeline->new(source => $source, postgres => $postgres));
$pipeline->stop;
purge();
$pipeline->start->wait_for_state('streaming');
$source->sql('insert into shop.t values (3, 3)');
$pipeline->wait_for_catchup;
$pipeline->is_same('B9: the file of the position is purged, and all that it had was applied: by GTIDs it goes on');

$pipeline->stop;
my $before = last_number($source);
my $old = $postgres->psql('select file || $$:$$ || "offset" from cdc_bridge.position');
$source->sql('insert into shop.t values (4, 4)', 'insert into shop.t values (5, 5)', 'delete from shop.t where id = 1');
purge();
my ($oldest) = $source->binlog_position;
my $missing = range($source, $before + 1, $before + 3);
$pipeline->start;
refused('B9: purged during an outage', 'YC001', qr/Wanted \Q$old\E; the oldest binary log is \Q$oldest\E\. Its binary log no longer has \Q$missing\E, which the pipeline has not applied\./);
like($postgres->psql(q{select status || detail from cdc_check_pipeline('shop_in') where "check" = 'position'}), qr/^error.*no longer has \Q$missing\E/, 'cdc_check_pipeline says it too');
is($postgres->psql('select count(*) from shop.t'), '3', 'the tables stay as they are');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"on_position_lost": "resync"}')});
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('B9: with on_position_lost the tables are copied anew');
like($postgres->log_text, qr/pipeline "shop_in" goes on at server.*\n.*option "on_position_lost" has all tables copied anew\. 1 of its tables/, 'which the log tells');
$source->sql('insert into shop.t values (9, 9)');
$pipeline->wait_for_catchup;
$pipeline->is_same('and it follows');

# retention is watched: a position in the oldest file
$pipeline->stop;
$source->sql('flush binary logs', 'insert into shop.t values (10, 10)', 'flush binary logs');
like($postgres->psql(q{select status || detail from cdc_check_pipeline('shop_in') where "check" = 'position'}), qr/^warning.*is in the oldest of the source's \d+ binary logs/, 'B9: retention is watched beforehand');
$source->sql('set global binlog_expire_logs_seconds = 100000');
$postgres->psql("update cdc_bridge.position_1_$_ set committed_at = committed_at - interval '20 h'") for 1, 2;
$pipeline->start->wait_for_state('streaming')->wait_for_catchup;

# ---- 2. a set of GTIDs that is reset

$pipeline->stop;
$source->sql($is_mysql ? 'reset binary logs and gtids' : 'reset master', 'flush binary logs', 'insert into shop.t values (11, 11)');
my $wanted = $postgres->psql('select file from cdc_bridge.position');
$postgres->psql(q{select cdc_alter_pipeline('shop_in', options => '{"on_position_lost": null}')});
$pipeline->start;
$pipeline->wait_for_state('failed');
is($pipeline->status('last_error_sqlstate'), 'YC002', 'B10: numbering that was reset is refused') or diag($pipeline->describe);
like($pipeline->status('last_error_hint'), qr/anew => true/, 'with the way out');
$pipeline->stop;
$postgres->psql("select cdc_set_position('shop_in', anew => true)");
$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('B10: anew');

# ---- 3. families' own

if ($is_mysql)
{
	# holes, tags and several servers: exactly the set is sent
	my ($u, $v) = ('3e11fa47-71ca-11e1-9e33-c80aa9429562', '3e11fa47-71ca-11e1-9e33-c80aa9429563');
	$pipeline->stop;
	my $n = 100;
	my $as = sub { my ($gtid) = @_; $n++; return ("set gtid_next = '$gtid'", "insert into shop.t values ($n, $n)", "set gtid_next = 'automatic'"); };
	$source->sql(map { $as->($_) } "$u:5", "$u:1", "$v:blue:3", "$u:9", "$v:7");
	$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same('B11: numbers out of turn, tags, several servers');
	like($pipeline->status('applied_gtids'), qr/\Q$u:1:5:9\E.*\Q$v:7:blue:3\E/, 'all of them are in the set');
	$pipeline->stop;
	$source->sql(map { $as->($_) } "$u:3", "$u:2", "$v:blue:1");
	my $set = $postgres->psql('select gtids from cdc_bridge.position');
	$postgres->psql("select cdc_set_position('shop_in', gtids => '$set')");
	$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same('B11: by the set alone, holes are filled and nothing comes twice');
	is($pipeline->status('applied_gtids') =~ s/\s//gr, $source->gtids, 'and the set is the source\'s');

	# transactions of a replica's own that its log has lost
	my $pair = CdcBridge::Pair->new(apart => 1);
	my ($a, $b) = ($pair->first, $pair->second);
	$b->sql('create database of_its_own', 'flush binary logs');
	my ($file) = $b->binlog_position;
	$b->sql("purge binary logs to '$file'");
	my $foreign = range($b, 1, 1);
	$b->replicate_from($a);
	shop($a);
	begin($pair->pipeline(postgres => $postgres));
	$pair->fail_over;
	refused('B14: purged transactions of a server that never replicated them', 'YC001', qr/no longer has \Q$foreign\E, which the pipeline has not applied/);
	# they are known to concern nothing here
	$pipeline->stop;
	$set = $postgres->psql('select gtids from cdc_bridge.position');
	$postgres->psql("select cdc_set_position('shop_in', gtids => '$set,$foreign')");
	$b->sql('insert into shop.t values (3, 3)');
	$pipeline->start;
	$pair->wait_for_server($pipeline, $b);
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same('B14: and can be passed over by name, on a server that was never followed');
}
else
{
	# several domains, each with its own numbers
	my $pair = CdcBridge::Pair->new;
	my ($a, $b) = ($pair->first, $pair->second);
	shop($a);
	begin($pair->pipeline(postgres => $postgres));
	$a->sql('set gtid_domain_id = 7', 'insert into shop.t values (3, 3)', 'insert into shop.t values (4, 4)', 'set gtid_domain_id = 0', 'insert into shop.t values (5, 5)');
	$pipeline->wait_for_catchup;
	like($pipeline->status('applied_gtids'), qr/^0-\d+-\d+,7-\d+-2$/, 'B16: several domains are one position');
	$pair->fail_over;
	$b->sql('set gtid_domain_id = 7', 'insert into shop.t values (6, 6)', 'set gtid_domain_id = 9', 'insert into shop.t values (7, 7)', 'set gtid_domain_id = 0');
	$pair->wait_for_server($pipeline, $b);
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same('B16: and go on at another server, with a domain that is new');
}

done_testing();
