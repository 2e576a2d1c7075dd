# Servers that cannot take the place of the one that was followed: each is refused with the exact transactions that are missing, nothing
# is applied of it, and there is a way on that keeps the tables.
# cells: mariadb-15 mysql-18
# takes: 40 s

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

# The pipeline leads to another address, as when a virtual IP moves.
sub readdress
{
	my ($source) = @_;
	$postgres->psql('alter server shop options (set port ' . "'" . $source->port . "')");
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

# ---- 1. promoted without the last transactions

my $pair = CdcBridge::Pair->new;
my ($a, $b) = ($pair->first, $pair->second);
shop($a);
begin(CdcBridge::Pipeline->new(source => $a, postgres => $postgres));
$b->wait_for_replica($a);
$b->sql($is_mysql ? 'stop replica' : 'stop slave');
my $before = last_number($a);
$a->sql('insert into shop.t values (3, 3)', 'insert into shop.t values (4, 4)');
$pipeline->wait_for_catchup;
$a->sql('flush tables with read lock');
my $lost = range($a, $before + 1, $before + 2);
$a->kill9;
readdress($b);
refused('B15: a server behind the same address that lacks what is applied', 'YC002', qr/It does not have \Q$lost\E, which the pipeline has applied\./);
like($pipeline->status('last_error_detail'), qr/\Q${\ CdcBridge::Pair::identity($b)}\E/, 'and which server answers');
is($postgres->psql('select count(*) from shop.t'), '4', 'the tables stay as they are');
like($postgres->psql(q{select detail from cdc_check_pipeline('shop_in') where "check" = 'position'}), qr/It does not have \Q$lost\E/, 'cdc_check_pipeline says the same');
$b->sql('insert into shop.t values (5, 5)');
$pipeline->start;
refused('and writes of its own do not change that', 'YC002', qr/It does not have \Q$lost\E/);

# the way out: anew, beside the rows
$pipeline->stop;
$postgres->psql("select cdc_set_position('shop_in', anew => true)");
like($postgres->{messages}, qr/copies all its tables anew when it is started/, 'the way out is told');
$pipeline->start;
$pair->wait_for_server($pipeline, $b);
$pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
$pipeline->is_same('anew => true: the tables are those of the new server');
$b->sql('update shop.t set v = 6 where id = 5', 'insert into shop.t values (6, 6)');
$pipeline->wait_for_catchup;
$pipeline->is_same('and follow it');

# ---- 2. a replica that lags is waited for

$pair = CdcBridge::Pair->new;
($a, $b) = ($pair->first, $pair->second);
shop($a);
begin($pair->pipeline(postgres => $postgres));
$b->wait_for_replica($a);
# its applier is held up by a lock, which is what a long statement does
my $lock = $b->connect;
$lock->do('begin');
$lock->do('select * from shop.t where id = 1 for update');
$before = last_number($a);
$a->sql('update shop.t set v = 10 where id = 1', 'insert into shop.t values (7, 7)');
$pipeline->wait_for_catchup;
ok(poll_until(sub { my $row = $b->dbh->selectrow_hashref($is_mysql ? 'show replica status' : 'show slave status');
	my @own = $a->binlog_position; return ($row->{Read_Source_Log_Pos} // $row->{Read_Master_Log_Pos}) >= $own[1]; }), 'the replica has received it');
$a->kill9;
$pipeline->wait_for_state('retrying');
ok(poll_until(sub { $pipeline->status('last_error_sqlstate') eq '08004' }), 'a replica that has not come so far yet: it is tried again');
like($pipeline->status('last_error_detail'), qr/does not have .* yet, which the pipeline has applied, and is applying/, 'which is told');
$lock->do('rollback');
$pair->wait_for_server($pipeline, $b);
$pipeline->wait_for_state('streaming');
$b->promote;
$b->sql('insert into shop.t values (8, 8)');
$pipeline->wait_for_catchup;
$pipeline->is_same('when it has, it is followed');

# ---- 3. without GTIDs only somebody who knows can name the place

if ($is_mysql)
{
	my ($c, $d) = map { CdcBridge::Source->new(args => [ '--gtid-mode=OFF', "--server-id=$_", '--performance-schema=ON' ]) } 91, 92;
	for my $server ($c, $d)
	{
		$server->sql(q{grant backup_admin on *.* to 'repl'@'%'}, q{grant select on performance_schema.log_status to 'repl'@'%'});
		shop($server);
	}
	begin(CdcBridge::Pipeline->new(source => $c, postgres => $postgres));
	my ($file, $offset) = $d->binlog_position;
	$d->sql('insert into shop.t values (3, 3)');
	readdress($d);
	$c->stop;
	refused('B15: file and offset mean nothing elsewhere', 'YC002', qr/The position is a file and an offset of the former server's log, without GTIDs\./);
	my $uuid = $d->query_value('select @@server_uuid');
	like($pipeline->status('last_error_detail'), qr/is server "$uuid"/, 'the identity of the server that answers is told');
	$pipeline->stop;
	$postgres->psql("select cdc_set_position('shop_in', at => '$file:$offset', server => '$uuid')");
	$pipeline->{source} = $d;
	$pipeline->start->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same('B15: a place in its log that was named with its identity');
	is($pipeline->table_status('t', 'conflicts'), '0', 'and nothing came twice');
	$d->stop;
}

# ---- 4. a replica that does not log what it replicates

$pair = CdcBridge::Pair->new(logs => 0);
($a, $b) = ($pair->first, $pair->second);
shop($a);
begin($pair->pipeline(postgres => $postgres));
$b->wait_for_replica($a);
# the server's replica has that number
my $id = $b->query_value('select @@server_id');
$b->sql('grant replication master admin on *.* to \'repl\'@\'%\'') if !$is_mysql;
$a->sql('grant replication master admin on *.* to \'repl\'@\'%\'') if !$is_mysql;
$postgres->psql("alter server shop options (add server_id '$id')");
like($postgres->psql(q{select detail from cdc_check('shop') where "check" = 'server_id' and status = 'error'}), qr/^The option server_id is $id, which another replica of the server has\.$/m,
	'B26: cdc_check finds a server_id that is taken');
$postgres->psql('alter server shop options (drop server_id)');
$pipeline->wait_for_state('streaming');
my $b_port = $b->port;
$postgres->psql("create server quiet foreign data wrapper cdc_mysql options (host '127.0.0.1', port '$b_port'); create user mapping for postgres server quiet options (username 'repl', password 'repl-secret')");
like($postgres->psql(q{select status || detail || coalesce(hint, '') from cdc_check('quiet') where "check" like 'log_%_updates'}),
	qr/^errorThe server is a replica and its log_(replica|slave)_updates is "OFF"\..*= ON in the source's configuration/, 'B17: cdc_check finds a replica that does not log');
my $quiet = CdcBridge::Pipeline->new(source => $b, postgres => $postgres, name => 'quiet_in', server => 'quiet', target_schema => 'quiet')->start;
$quiet->wait_for_state('retrying');
is($quiet->status('last_error_sqlstate'), 'YC003', 'B17: and no pipeline begins there');
$quiet->drop;
my $applied = last_number($a);
my $all = range($a, 1, $applied);
$pair->fail_over;
$b->sql('insert into shop.t values (3, 3)');
if ($is_mysql)
{
	# what it applied counts as executed and purged, so a replica that had all of it can take over
	$pair->wait_for_server($pipeline, $b);
	$pipeline->wait_for_state('streaming')->wait_for_catchup;
	$pipeline->is_same('B17: a server that was promoted goes on where its source ended');
}
else
{
	refused('B16: a server promoted without log_slave_updates', 'YC002', qr/It does not have \Q$all\E, which the pipeline has applied/);
}

done_testing();
