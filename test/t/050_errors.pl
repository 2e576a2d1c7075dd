# What can be wrong at the source: each case is told in the view with a message, a detail or hint and an SQLSTATE, and where it
# can be mended the pipeline comes back by itself.
# takes: 36 s

use strict;
use warnings;

use CdcBridge::Env qw(free_port poll_until);
use CdcBridge::Pipeline;
use CdcBridge::Postgres;
use CdcBridge::Source;
use Test::More;

my $postgres = CdcBridge::Postgres->new(conf => "log_min_messages = debug1\n");
my $number = 0;

# A pipeline of its own for each case, all in one cluster.
sub pipeline_for
{
	my ($source, %option) = @_;
	$number++;
	my $mapping = delete $option{mapping} // {};
	return CdcBridge::Pipeline->new(source => $source, postgres => $postgres, name => "case_$number", server => "server_$number",
		target_schema => "target_$number", %option)->setup(%$mapping);
}

# Start a pipeline and wait until the view tells an error that matches; check what else it tells.
sub fails_with
{
	my ($name, $pipeline, $message, $hint, $detail) = @_;
	# a refusal may come at once from cdc_start_pipeline, or from the worker: both are told
	my $told = $postgres->psql_error($pipeline->start_statement);
	$pipeline->{created} = 1;
	if ($told ne '')
	{
		like($told, $message, "$name: refused at once");
		like($told, qr/HINT:.*$hint/s, "$name: with a hint") if $hint;
		return;
	}
	eval { $pipeline->wait_for_status('last_error', $message) } or do { fail("$name: $@"); return; };
	pass("$name: the error is named");
	like($pipeline->status('last_error_sqlstate'), qr/^[0-9A-Z]{5}$/, "$name: it has an SQLSTATE");
	isnt($pipeline->status('last_error_sqlstate'), 'XX000', "$name: not the one for internal errors");
	like($pipeline->status('last_error_hint'), $hint, "$name: with a hint") if $hint;
	like($pipeline->status('last_error_detail'), $detail, "$name: with a detail") if $detail;
	like($pipeline->state, qr/^(retrying|failed|starting)$/, "$name: the state says so");
	unlike(join(' ', map { $pipeline->status($_) } qw(last_error last_error_detail last_error_hint)), qr/repl-secret|wrong-secret/,
		"$name: no password is shown");
}

sub comes_back
{
	my ($name, $pipeline) = @_;
	eval { $pipeline->wait_for_state('streaming')->wait_for_tables->wait_for_catchup } or do { fail("$name: it comes back by itself\n$@"); return; };
	$pipeline->is_same("$name: it comes back by itself");
}

my $source = CdcBridge::Source->new;
$source->sql('create database shop', 'create table shop.t (id int primary key, v varchar(20))', "insert into shop.t values (1, 'one'), (2, 'two')");

# wrong password, mended by changing the user mapping
{
	my $pipeline = pipeline_for($source, mapping => { password => 'wrong-secret' });
	fails_with('wrong password', $pipeline, qr/could not connect to source server "server_\d+"|access denied/i, qr/USER MAPPING/i);
	$postgres->psql("alter user mapping for current_user server $pipeline->{server} options (set password 'repl-secret')");
	comes_back('wrong password', $pipeline);
	$pipeline->stop->drop;
}

# unreachable host: a port on which nobody listens
{
	my $pipeline = pipeline_for($source, server_options => { port => free_port() });
	fails_with('unreachable host', $pipeline, qr/could not connect/i, qr/./, qr/./);
	$postgres->psql("alter server $pipeline->{server} options (set port '" . $source->port . "')");
	comes_back('unreachable host', $pipeline);
	# and a host that goes away while it streams
	$source->stop;
	$pipeline->wait_for_state('retrying');
	$source->start;
	$source->sql("insert into shop.t values (3, 'three')");
	comes_back('source away for a while', $pipeline);
	$pipeline->stop->drop;
}

# a user that may read but not replicate, mended by a GRANT
{
	$source->create_user('reader', 'reader-secret', 'select');
	my $pipeline = pipeline_for($source, mapping => { username => 'reader', password => 'reader-secret' });
	like($postgres->psql("select string_agg(hint, ' ') from cdc_check('$pipeline->{server}') where status = 'error'"), qr/GRANT.*REPLICATION SLAVE/is,
		'missing privilege: the check prints the GRANT to paste');
	fails_with('missing privilege', $pipeline, qr/does not let the user/, qr/GRANT REPLICATION SLAVE/, qr/'reader'/);
	$source->sql(q{grant select, replication slave, replication client on *.* to 'reader'@'%'});
	comes_back('missing privilege', $pipeline);
	$pipeline->stop->drop;
}

# STATEMENT format, mended by SET GLOBAL
{
	$source->sql("set global binlog_format = 'STATEMENT'");
	my $pipeline = pipeline_for($source);
	fails_with('binlog_format', $pipeline, qr/does not write row events/, qr/binlog_format = '?ROW/i, qr/STATEMENT/);
	like($postgres->psql("select string_agg(hint, ' ') from cdc_check('$pipeline->{server}') where status = 'error'"), qr/binlog_format/, 'binlog_format: the check says it too');
	$source->sql("set global binlog_format = 'ROW'");
	comes_back('binlog_format', $pipeline);
	$pipeline->stop->drop;
}

# row metadata that is not FULL, mended by SET GLOBAL
{
	$source->sql("set global binlog_row_metadata = 'MINIMAL'");
	my $pipeline = pipeline_for($source);
	fails_with('row metadata', $pipeline, qr/metadata/i, qr/SET GLOBAL binlog_row_metadata = '?FULL/i);
	$source->sql("set global binlog_row_metadata = 'FULL'");
	comes_back('row metadata', $pipeline);
	$pipeline->stop->drop;
}

# the log was purged while the pipeline was stopped: nothing is skipped by guess; drop, and start anew
{
	my $pipeline = pipeline_for($source);
	$pipeline->start->wait_for_state('streaming')->wait_for_tables->wait_for_catchup;
	$pipeline->stop;
	$source->sql("insert into shop.t values (10, 'lost from the log')", 'flush binary logs', "insert into shop.t values (11, 'x')", 'flush binary logs');
	my ($file) = $source->binlog_position;
	# a file that the stopped pipeline's dump thread has open is kept until the server notices that nobody reads
	poll_until(sub { $source->sql("purge binary logs to '$file'"); return ($source->query_rows('show binary logs'))[0][0] eq $file; }, 60)
	  or die "the source keeps its log files\n";
	$pipeline->start;
	eval { $pipeline->wait_for_status('last_error', qr/no longer has the/) } or diag($@);
	like($pipeline->status('last_error'), qr/no longer has the (wanted )?position/, 'purged log: the error is named');
	like($pipeline->status('last_error_detail'), qr/\w+\.\d+/, 'purged log: the detail names files');
	isnt($pipeline->status('last_error_hint'), '', 'purged log: there is a hint');
	my %named = map { $_ => 1 } $pipeline->status('last_error_hint') =~ /\b(cdc_\w+)\(/g;
	is($postgres->psql(sprintf('select count(distinct proname) from pg_proc where proname in (%s)', join(', ', map { "'$_'" } 'none', keys %named))),
		keys %named, 'purged log: every function that the hint names is there');
	ok($named{cdc_set_position}, 'purged log: a way on without a new copy is named');
	is($pipeline->state, 'failed', 'purged log: it does not try for ever');
	$postgres->psql("select cdc_stop_pipeline('$pipeline->{name}')");
	$pipeline->wait_for_state('stopped')->drop->drop_target->start;
	comes_back('purged log, dropped and started anew', $pipeline);
	$pipeline->stop->drop;
}

# binary log off: only a restart of the source mends that
{
	my $off = CdcBridge::Source->new(args => ['--skip-log-bin']);
	$off->sql('create database shop', 'create table shop.t (id int primary key, v varchar(20))', "insert into shop.t values (1, 'one')");
	my $pipeline = pipeline_for($off);
	fails_with('binary log off', $pipeline, qr/binary log/i, qr/log.bin/i);
	$off->{args} = [];
	$off->restart;
	comes_back('binary log off', $pipeline);
	$pipeline->stop->drop;
	$off->stop;
}

# mistakes in SQL
like($postgres->psql_error("create server bad foreign data wrapper cdc_mysql options (host 'x', prot '3306')"),
	qr/unrecognized|invalid option.*HINT:.*port/s, 'unknown server option: the hint names valid ones');
like($postgres->psql_error("create server bad foreign data wrapper cdc_mysql options (host 'x', port 'many')"), qr/port/, 'a port that is no number');
like($postgres->psql_error("create server bad foreign data wrapper cdc_mysql options (host 'x', password 'y')"), qr/password/, 'a password does not belong on a server');
like($postgres->psql_error(q{select cdc_start_pipeline('p', source => 'server_1', tables => '{shop.*}', options => '{"bach_size": 1}')}),
	qr/unrecognized option "bach_size".*HINT:.*[Vv]alid options/s, 'unknown pipeline option: the hint names valid ones');
like($postgres->psql_error(q{select cdc_start_pipeline('p', source => 'shp', tables => '{shop.*}')}), qr/server "shp" does not exist.*HINT/s, 'unknown server');
like($postgres->psql_error(q{select cdc_start_pipeline('nobody')}), qr/"nobody" does not exist/, 'unknown pipeline');
$postgres->psql("create server no_mapping foreign data wrapper cdc_mysql options (host '127.0.0.1')");
like($postgres->psql_error(q{select cdc_start_pipeline('p', source => 'no_mapping', tables => '{shop.*}')}), qr/user mapping not found.*HINT:.*CREATE USER MAPPING/s, 'no user mapping');
like($postgres->psql_error(q{begin; call cdc_wait_for_pipeline('p', state => 'streaming'); commit}), qr/ERROR/, 'waiting inside a transaction block is refused');

# without preload: said at once
{
	my $plain = CdcBridge::Postgres->new(conf => "shared_preload_libraries = ''");
	my $pipeline = CdcBridge::Pipeline->new(source => $source, postgres => $plain)->setup;
	like($plain->psql_error($pipeline->start_statement), qr/shared_preload_libraries/, 'without preload the start says what to set');
}

done_testing();
